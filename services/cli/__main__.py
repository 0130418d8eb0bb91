"""`python -m services.cli`: the same as `gouji`.

Law: calls `main`.
"""

from services.cli.main import main

main()
