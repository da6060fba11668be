"""Sample calls: each endpoint in curl and Python, generated from its row.

Both take the service's address and the key from the environment: `URL` and `KEY`.
"""

from shlex import quote
from urllib.parse import urlencode

from service.http.api.endpoint import Endpoint, Keyed

_CURLS_OWN = ("GET", "POST")
"""The methods that curl chooses by itself: POST for what has a form."""


def in_curl(endpoint: Endpoint) -> str:
    """Return a shell command."""
    words = ["curl -sS"]
    if endpoint.method not in _CURLS_OWN:
        words.append(f"-X {endpoint.method}")
    if isinstance(endpoint, Keyed):
        words.append('-H "X-API-Key: $KEY"')
    if endpoint.form is not None:
        fields = {endpoint.form.file_field: f"@{endpoint.form.sample_file}"} | dict(endpoint.form.sample)
        words += [f"-F {quote(f'{name}={value}')}" for name, value in fields.items()]
    return " ".join([*words, f'"$URL{_address(endpoint)}"'])


def in_python(endpoint: Endpoint) -> str:
    """Return a Python program that uses httpx."""
    lines = ["import os", "", "import httpx", ""]
    call = [f'os.environ["URL"] + "{_address(endpoint)}"']
    if isinstance(endpoint, Keyed):
        call.append('headers={"X-API-Key": os.environ["KEY"]}')
    if (form := endpoint.form) is not None:
        call.append(f'files={{"{form.file_field}": open("{form.sample_file}", "rb")}}')
        if form.sample:
            call.append(f"data={dict(form.sample)!r}".replace("'", '"'))
        call.append("timeout=300")
    lines += [f"response = httpx.{endpoint.method.lower()}(", *(f"    {argument}," for argument in call), ")"]
    return "\n".join([*lines, "print(response.text)"])


def _address(endpoint: Endpoint) -> str:
    """Return the path and query, filled with the sample values of the parameters."""
    query = {}
    path = endpoint.path
    for parameter in endpoint.parameters:
        path = path.replace(f"{{{parameter.name}}}", parameter.sample)
        if parameter.place == "query" and parameter.sample:
            query[parameter.name] = parameter.sample
    return f"{path}?{urlencode(query)}" if query else path
