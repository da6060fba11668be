"""What the rows of formats that are XML share."""

XML_LOSSES = frozenset({"lists", "infinite", "near_infinite", "binary_texts", "carriage_returns", "control"})
"""The kinds of values that every one of them changes or leaves out, as keys of `VALUE_LOSSES`."""
NOTHING_HELD = (
    "Elements without content, or of line ends or blanks alone ({count}), became missing values or empty texts; "
    "columns that hold nothing else were left out."
)


def of_the_file(starts: bytes, ends: bytes, wanted: bytes) -> bytes:
    """What a user wrote about a file, not about a feature: the first of the elements `wanted` between two others.

    All are regular expressions of what follows `<`. So that no byte is read twice, a match never goes beyond `ends`,
    among which are `starts`.
    """
    passed = rb"[^<]*+(?:<(?!" + ends + rb"|" + wanted + rb")[^<]*+)*+"
    return rb"<" + starts + passed + rb"<(?:" + wanted + rb")"


HOLDS = rb"\b[^<>]*+(?<!/)>\s*+(?:<!\[CDATA\[\s*+)?+[^<\s\]]"
"""The rest of the start tag of an element whose content begins with text."""
