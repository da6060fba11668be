"""Files with the right extension that the converter cannot read, by their first bytes, and what to do about them."""

import re
from collections.abc import Sequence

import msgspec

from service.errors import Rejection

START_BYTES = 512
"""How much of a file tells whether it is one of these."""


class Unread(msgspec.Struct, frozen=True):
    """How such files begin, as a regular expression, and the sentence that refuses them."""

    start: bytes
    sentence: str


UTF_16 = Unread(rb"\xff\xfe|\xfe\xff", "The file is text in UTF-16. Save it as UTF-8 and send it again.")
UTF_16_WITHOUT_MARK = Unread(
    rb"[^\0]\0[^\0]\0|\0[^\0]\0[^\0]",
    "The file looks like text in UTF-16 without a byte order mark. Save it as UTF-8 and send it again.",
)
"""No text in another encoding has bytes of zero between its first characters."""
NO_UTF_16 = (UTF_16, UTF_16_WITHOUT_MARK)
BINARY_DXF = Unread(
    rb"AutoCAD Binary DXF", "The file is a binary DXF, which cannot be read. Save it as ASCII DXF and send it again."
)
ENCRYPTED_WORKBOOK = Unread(
    rb"\xd0\xcf\x11\xe0",
    "The file is an encrypted workbook, or one of Excel before 2007. Save it without a password as .xlsx and send it "
    "again.",
)


def refuse_unread(head: bytes, unread: Sequence[Unread]) -> None:
    """Refuse a file that begins with `head` if it begins like one of `unread`.

    Raises:
        Rejection: it does.
    """
    for kind in unread:
        if re.match(kind.start, head):
            raise Rejection(kind.sentence)
