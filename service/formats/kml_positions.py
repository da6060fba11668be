"""Texts of coordinates in KML, of which the driver reads what begins like a number, and 0 for the rest."""

_NUMBER = rb"[\d.eE+-]++"
POSITIONS = rb"\s*+(?:" + _NUMBER + rb"(?:\s*+,\s*+" + _NUMBER + rb"){1,2}+(?=[\s,<])\s*+)*+,?+\s*+"
"""Positions of two or three numbers. No byte is read twice."""
UNREAD_POSITIONS = rb"<coordinates>" + POSITIONS + rb"(?:[^<]{200}|[^<]{1,199}</)"
"""An element with anything else, unless that follows more positions than are looked at together.

A position is shorter than 200 bytes, so that one is not mistaken of which the rest is in the next piece.
"""
