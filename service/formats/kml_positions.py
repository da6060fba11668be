"""Texts of coordinates in KML, of which the driver reads what begins like a number, and 0 for the rest."""

_NUMBER = rb"[\d.eE+-]++"
POSITIONS = rb"\s*+(?:" + _NUMBER + rb"(?:\s*+,\s*+" + _NUMBER + rb"){1,2}+(?=[\s,<])\s*+)*+,?+\s*+"
"""Positions of two or three numbers. No byte is read twice."""
UNREAD_POSITIONS = rb"<coordinates>(?=[^<]*+</)(?!" + POSITIONS + rb"</)"
"""An element with anything else. One that is longer than what is looked at together is not examined."""
