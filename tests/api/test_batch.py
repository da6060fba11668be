"""Several files in one request, each handled on its own (interface 4.2, 6)."""

from tests.api.conftest import NewClient
from tests.support.data import lakes
from tests.support.server import Client

MIB = 2**20
ENTRY = {
    "fileName", "success", "jobId", "status", "downloadUrl", "downloadExpiresAt", "featureCount", "outputSizeBytes",
    "processingTimeMs", "truncationReport", "error", "needsUpgrade", "limit", "paymentPastDue", "multiLayer",
    "outputEpsg", "warnings",
}  # fmt: skip


def padded(size: int) -> bytes:
    """A GeoJSON document of `size` bytes."""
    return lakes().ljust(size)


def test_each_file_has_an_entry_in_the_order_of_the_request(client: Client) -> None:
    """Every entry has every field and its own output."""
    names = [f"{number}.geojson" for number in range(5)]
    answer = client.batch(*((name, lakes()) for name in names), outputFormats=["Kml", "", "Csv"])
    assert answer["success"] is True
    assert [entry["fileName"] for entry in answer["results"]] == names
    assert all(set(entry) == ENTRY for entry in answer["results"])
    links = [entry["downloadUrl"].partition("?")[0] for entry in answer["results"]]
    assert [link.rpartition(".")[2] for link in links] == ["kml", "zip", "csv", "zip", "zip"]
    assert answer["remainingConversions"] == 5000 - 5
    assert answer["remainingBytes"] == 10 * 2**30 - 5 * len(lakes())
    assert answer["newWalletBalanceCents"] is None


def test_a_failure_touches_no_other_file(client: Client) -> None:
    """A damaged file, an unknown format and an invalid output name sit among successes; only successes are counted."""
    answer = client.batch(
        ("a.geojson", lakes()),
        ("b.geojson", b"{"),
        ("c.xyz", b"x"),
        ("d.geojson", lakes()),
        ("e.geojson", lakes()),
        outputFormats=["", "", "", "Nonsense", ""],
    )
    assert [entry["success"] for entry in answer["results"]] == [True, False, False, False, True]
    assert all(entry["error"] for entry in answer["results"] if not entry["success"])
    assert answer["remainingConversions"] == 5000 - 2


def test_source_systems_are_aligned_with_the_files(client: Client) -> None:
    """An empty entry means that the file states its own system."""
    answer = client.batch(
        ("a.geojson", lakes()), ("b.csv", b"x,y\n1,2\n"), ("c.csv", b"x,y\n1,2\n"), sourceEpsgs=["", "4326", ""]
    )
    assert [entry["success"] for entry in answer["results"]] == [True, True, False]
    assert "sourceEpsg" in answer["results"][2]["error"]


def test_a_batch_without_a_success_is_none(client: Client) -> None:
    """`success` is true if at least one file was converted."""
    answer = client.batch(("a.geojson", b"{"))
    assert answer["success"] is False


def test_once_a_limit_is_reached_every_later_file_is_refused_by_it(new_client: NewClient) -> None:
    """The outcome equals that of a sequential run: the third file fails, so the eleventh gets its place."""
    free = new_client("free")
    files = [(f"{number}.geojson", b"{" if number == 2 else lakes()) for number in range(14)]
    answer = free.batch(*files, outputFormats=["Csv"] * 14)
    succeeded = [entry["success"] for entry in answer["results"]]
    assert succeeded == [True] * 2 + [False] + [True] * 8 + [False] * 3
    assert [(entry["needsUpgrade"], entry["limit"]) for entry in answer["results"][11:]] == [(True, "conversions")] * 3
    assert answer["remainingConversions"] == 0
    assert free.usage() == (10, 10 * len(lakes()))


def test_after_a_limit_it_is_named_for_whatever_comes(new_client: NewClient) -> None:
    """Whether broken, unknown, equal to its target or above the cap: later files are not examined."""
    free = new_client("free")
    later = [
        ("a.geojson", b"{"),
        ("b.xyz", b"x"),
        ("c.geojson", lakes()),
        ("d.geojson", padded(6 * MIB)),
        ("e.geojson", lakes()),
    ]
    files = [*((f"{number}.geojson", lakes()) for number in range(11)), *later]
    answer = free.batch(*files, outputFormats=["Csv"] * 13 + ["GeoJSON", "Csv", "Csv"])
    refused = answer["results"][10:]
    assert [entry["success"] for entry in answer["results"]] == [True] * 10 + [False] * 6
    assert {(entry["needsUpgrade"], entry["limit"]) for entry in refused} == {(True, "conversions")}
    assert all(entry["error"] and entry["status"] == "Failed" for entry in refused)
    assert free.usage() == (10, 10 * len(lakes()))


def test_a_refusal_by_size_concerns_its_own_file(new_client: NewClient) -> None:
    """A file above the plan's cap does not stop the files after it."""
    free = new_client("free")
    answer = free.batch(("a.geojson", padded(6 * MIB)), ("b.geojson", lakes()))
    assert [(entry["success"], entry["limit"]) for entry in answer["results"]] == [(False, "fileSize"), (True, None)]


def test_a_wallet_pays_file_by_file(new_client: NewClient) -> None:
    """Three files at six cents with fifteen cents left: the third is refused, and so is everything after it."""
    wallet = new_client(wallet_cents=15)
    answer = wallet.batch(*((f"{number}.geojson", lakes()) for number in range(4)))
    assert [entry["limit"] for entry in answer["results"]] == [None, None, "wallet", "wallet"]
    assert answer["newWalletBalanceCents"] == 3
    assert (answer["remainingConversions"], answer["remainingBytes"]) == (None, None)


def test_a_file_above_the_ceiling_is_an_entry_of_its_batch(client: Client) -> None:
    """It fails alone if the batch as a whole is within its limit (interface 7.1)."""
    answer = client.batch(("a.geojson", b" " * (100 * MIB + 1)), ("b.geojson", lakes()))
    assert [entry["success"] for entry in answer["results"]] == [False, True]
    assert "100 MB" in answer["results"][0]["error"]
    assert client.server.wait_until_idle() == []
