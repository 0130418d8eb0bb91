from statistics import median

from tests.architecture.sources import sources

LONGEST_FILE = 600
LONGEST_FUNCTION = 50


def test_no_file_is_longer_than_one_idea() -> None:
    long = {source.name: count for source in sources() if (count := source.text.count("\n")) > LONGEST_FILE}

    assert not long


def test_no_function_is_longer_than_a_screen() -> None:
    long = {
        f"{source.name}:{function.lineno} {function.name}": length
        for source in sources()
        for function in source.functions()
        if (length := source.code_length(function)) > LONGEST_FUNCTION
    }

    assert not long


def test_the_median_function_stays_below_eight_lines() -> None:
    lengths = [source.code_length(function) for source in sources() for function in source.functions()]

    assert median(lengths) < 8
