"""How properties are tried: no deadline on a shared machine, and no tracing for explanations, which costs tenfold."""

from __future__ import annotations

from hypothesis import Phase, settings

settings.register_profile(
    "house", deadline=None, phases=(Phase.explicit, Phase.reuse, Phase.generate, Phase.target, Phase.shrink)
)
settings.load_profile("house")
