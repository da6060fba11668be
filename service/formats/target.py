"""Which format an upload is converted into."""

from collections.abc import Mapping

from service.errors import Rejection
from service.formats.format import Format
from service.formats.registry import default_output, find_output


def choose_target(source: Format, output: str | None, unavailable: Mapping[str, str] = {}) -> Format:
    """The output format (interface 1).

    Args:
        source: the format of the input.
        output: the text of outputFormat, None or blank for the default direction.
        unavailable: formats that this host cannot write, token to reason.

    Raises:
        Rejection: the name is unknown, the format is that of the input, or the host cannot write it.
    """
    target = find_output(output) if output and output.strip() else default_output(source)
    if target.token == source.token:
        raise Rejection(f"The file is {target.title} already. Choose another outputFormat.")
    if target.token in unavailable:
        raise Rejection(f"{target.title} cannot be written on this host: {unavailable[target.token]}")
    return target
