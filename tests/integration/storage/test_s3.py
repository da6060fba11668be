"""The S3 store: parts, buckets, credentials, and failures on the way to a server."""

import asyncio
import json
import subprocess
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, aclosing, asynccontextmanager, suppress
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from pathlib import Path
from urllib.parse import parse_qs, parse_qsl, urlsplit

import anyio
import httpx
import msgspec
import pytest

from bench.fleet.hosts import network
from bench.fleet.object_server import ObjectServer
from service.errors import ObjectsLeft, StorageFault, StorageUnavailable
from service.storage import upload
from service.storage.bucket_config import HOME, BucketConfig
from service.storage.clients import Effort
from service.storage.port import ObjectKey, new_key
from service.storage.s3 import open_s3
from service.storage.upload import SMALL_BYTES
from tests.schedules.tap import OfS3, Tap
from tests.support.patience import PATIENCE_SECONDS, until
from tests.support.small_disk import small_disk

from .conftest import HASTY, MovableClock, Stage, failing, place, s3_stage
from .servers import ACCESS_KEY, BUCKET, SECRET_KEY, S3Server, Wire, s3_server, wire_to

CONTENT = bytes(range(256)) * 400
PART_BYTES = 5 << 20
"""The least that S3 takes as a part. Those of the service are larger, which only takes the tests longer."""
SEVERAL_PARTS = 2 * PART_BYTES + (3 << 16)
MORE_THAN_BUFFERS_HOLD = 13 * PART_BYTES
"""It is on its way for a while, so that a test can interrupt it."""


@pytest.fixture(autouse=True)
def small_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Cut what is stored into parts of that size."""
    monkeypatch.setattr(upload, "PART_BYTES", PART_BYTES)


@pytest.fixture
def own_server(tmp_path: Path) -> Iterator[S3Server]:
    """A server for this test alone, which may kill it."""
    (tmp_path / "server").mkdir()
    with s3_server(tmp_path / "server") as running:
        yield running


@pytest.fixture
async def wire(own_server: S3Server) -> AsyncIterator[Wire]:
    """A relay to that server."""
    async with wire_to(own_server) as relay:
        yield relay


@pytest.fixture
async def hasty(wire: Wire, tmp_path: Path, clock: MovableClock) -> AsyncIterator[Stage]:
    """A store behind the relay with short time limits."""
    async with s3_stage({HOME: place(wire.url)}, clock, tmp_path, HASTY) as stage:
        yield stage


async def test_no_upload_waits_for_a_slow_reader(server: S3Server, tmp_path: Path, clock: MovableClock) -> None:
    """Stalled readers occupy all connections for reading, and no others."""
    effort = msgspec.structs.replace(HASTY, connections=2)
    async with s3_stage({HOME: place(server.url)}, clock, tmp_path, effort) as stage, AsyncExitStack() as readers:
        key = await stage.put(bytes(8 << 20))
        for _ in range(effort.connections):
            pieces = await readers.enter_async_context(aclosing(stage.storage.read(key)))
            assert await anext(pieces)
        await stage.storage.delete([await stage.put(b"another")])


# Parts


async def test_a_large_file_goes_up_in_parts_and_comes_back_whole(
    wire: Wire, own_server: S3Server, tmp_path: Path, clock: MovableClock
) -> None:
    """The last part is the remainder, and nothing of the upload stays behind."""
    content = bytes(index * 7 % 251 for index in range(1 << 16)) * (SEVERAL_PARTS >> 16)
    async with s3_stage({HOME: place(wire.url)}, clock, tmp_path) as stage:
        key = await stage.put(content)
        assert wire.sent.count(b"partNumber=") == -(-len(content) // PART_BYTES)
        assert (await stage.get(key)).content == content
    assert own_server.files() == [key]


async def test_an_upload_that_is_cancelled_leaves_no_parts(hasty: Stage, wire: Wire, own_server: S3Server) -> None:
    """Parts of an unfinished upload would be invisible and still cost money."""
    async with anyio.create_task_group() as group:
        group.start_soon(hasty.put, b"x" * MORE_THAN_BUFFERS_HOLD)
        await until(lambda: len(wire.sent) > PART_BYTES)
        group.cancel_scope.cancel()
    await until(lambda: own_server.files() == [])
    assert await hasty.keys() == set()


async def test_only_a_large_object_waits_until_the_server_wants_it(hasty: Stage, wire: Wire) -> None:
    """A small one is there with its header, which spares the server an answer."""
    for size, waits in ((10, False), (SMALL_BYTES, False), (SMALL_BYTES + 1, True)):
        wire.sent.clear()
        await hasty.put(b"x" * size)
        assert (b"100-continue" in wire.sent) is waits


async def test_a_server_that_does_not_say_whether_it_wants_a_large_object_gets_it(hasty: Stage, wire: Wire) -> None:
    """After a moment, as from other clients: the answer may be lost, or a proxy may not know the question."""
    wire.withheld = b"HTTP/1.1 100 Continue\r\n\r\n"
    key = await hasty.put(CONTENT)
    assert (await hasty.get(key)).content == CONTENT


async def test_encryption_at_rest_is_asked_for_with_every_object(
    wire: Wire, tmp_path: Path, clock: MovableClock
) -> None:
    """In one request or in parts, with the configured key."""
    sealed = msgspec.structs.replace(place(wire.url), sse="aws:kms", sse_key_id="key-of-tests")
    async with s3_stage({HOME: sealed}, clock, tmp_path) as stage:
        for size in (10, PART_BYTES + 1):
            wire.sent.clear()
            await stage.put(b"x" * size)
            head = bytes(wire.sent[:4096]).lower()
            assert b"x-amz-server-side-encryption: aws:kms" in head
            assert b"x-amz-server-side-encryption-aws-kms-key-id: key-of-tests" in head


# Faults


async def test_a_server_that_is_down_fails_clearly_and_needs_no_restart(hasty: Stage, own_server: S3Server) -> None:
    """Puts, lists, deletions and readiness fail while it is away, and work as soon as it is back."""
    key = await hasty.put(CONTENT)
    own_server.kill()
    for attempt in (hasty.put(CONTENT), hasty.keys(), hasty.storage.delete([key]), hasty.storage.check()):
        with failing("down"):
            await attempt
    await hasty.link(key)  # needs no server
    own_server.start()
    await hasty.storage.check()
    assert (await hasty.get(key)).content == CONTENT
    await hasty.put(CONTENT)


async def test_a_store_opens_while_its_server_is_down(
    own_server: S3Server, tmp_path: Path, clock: MovableClock
) -> None:
    """The service starts, reports that it is not ready, and becomes ready."""
    own_server.kill()
    async with s3_stage({HOME: place(own_server.url)}, clock, tmp_path, HASTY) as stage:
        with failing("down"):
            await stage.storage.check()
        own_server.start()
        await stage.storage.check()


async def test_a_server_killed_in_the_middle_of_an_upload_fails_it(
    hasty: Stage, wire: Wire, own_server: S3Server
) -> None:
    """No object appears under the key, and the same file can be stored once the server is back."""
    key, outcome = new_key(), list[StorageUnavailable]()

    async def put() -> None:
        try:
            await hasty.put(b"x" * MORE_THAN_BUFFERS_HOLD, key)
        except StorageUnavailable as error:
            outcome.append(error)

    async with anyio.create_task_group() as group:
        group.start_soon(put)
        await until(lambda: len(wire.sent) > PART_BYTES // 2)
        own_server.kill()
    assert [error.fault for error in outcome] in (["down"], ["slow"])
    own_server.start()
    assert key not in await hasty.keys()
    await hasty.put(b"y" * SEVERAL_PARTS, key)
    assert (await hasty.get(key)).content == b"y" * SEVERAL_PARTS


@pytest.mark.parametrize("size", [1000, SEVERAL_PARTS])
async def test_a_server_that_stalls_is_given_up_and_found_again(
    wire: Wire, tmp_path: Path, clock: MovableClock, size: int
) -> None:
    """Nobody waits forever for a missing response, in one request or between parts."""
    effort = msgspec.structs.replace(HASTY, timeout_seconds=2)
    async with s3_stage({HOME: place(wire.url)}, clock, tmp_path, effort) as stage:
        wire.flows.clear()
        with failing("slow"):
            await stage.put(b"x" * size)
        with failing("slow"):
            await stage.storage.check()
        wire.flows.set()
        key = await put_at_last(stage, b"x" * size)
        assert len((await stage.get(key)).content) == size


async def put_at_last(stage: Stage, content: bytes) -> ObjectKey:
    """Store the file in as many attempts as a busy host needs."""
    with anyio.fail_after(PATIENCE_SECONDS):
        while True:
            with suppress(StorageUnavailable):
                return await stage.put(content)


@pytest.mark.parametrize("size", [1000, SEVERAL_PARTS])
async def test_a_connection_that_breaks_is_tried_again(
    wire: Wire, tmp_path: Path, clock: MovableClock, size: int
) -> None:
    """The caller does not notice two broken connections, and the bytes are whole."""
    async with s3_stage({HOME: place(wire.url)}, clock, tmp_path, Effort(attempts=4)) as stage:
        wire.breaks = 2
        key = await stage.put(b"x" * size)
        assert wire.breaks == 0
        assert (await stage.get(key)).content == b"x" * size


@pytest.mark.parametrize("size", [1000, 3 * SMALL_BYTES])
async def test_what_is_damaged_on_its_way_to_the_server_is_sent_again(
    tmp_path: Path, clock: MovableClock, size: int
) -> None:
    """The server compares it with the SHA-256 that is signed."""
    (tmp_path / "server").mkdir()
    content = b"intact".rjust(size, b"-")
    with s3_server(tmp_path / "server", kind=ObjectServer) as server:
        async with wire_to(server) as wire, s3_stage({HOME: place(wire.url)}, clock, tmp_path) as stage:
            wire.damaged = b"intact"
            key = await stage.put(content)
            assert not wire.damaged
            assert (server.directory / BUCKET / place(wire.url).prefix / key).read_bytes() == content


async def test_an_answer_that_breaks_off_is_a_failure_of_the_store(hasty: Stage, own_server: S3Server) -> None:
    """The server is killed while it sends an object."""
    key = await hasty.put(b"x" * MORE_THAN_BUFFERS_HOLD)
    async with aclosing(hasty.storage.read(key)) as pieces:
        assert await anext(pieces)
        own_server.kill()
        with failing("down"):
            async for _ in pieces:
                pass


@pytest.mark.parametrize("left", [None, 10, 0])
async def test_what_a_server_has_confirmed_and_lost_is_not_stored(
    tmp_path: Path, clock: MovableClock, left: int | None
) -> None:
    """Wholly or in part, before its answer arrives."""
    (tmp_path / "server").mkdir()
    with s3_server(tmp_path / "server", kind=ObjectServer) as server:
        tap = Tap(OfS3, server.host_and_port())
        await tap.listen()
        async with s3_stage({HOME: place(f"http://127.0.0.1:{tap.port}")}, clock, tmp_path) as stage:
            key, put = new_key(), tap.hold("put", "after")
            async with anyio.create_task_group() as group:
                group.start_soon(_fail_to_put, stage, key)
                await until(put.reached.is_set)
                [stored] = (server.directory / BUCKET).glob(f"*/{key}")
                if left is None:
                    stored.unlink()
                else:
                    stored.write_bytes(CONTENT[:left])
                put.let_go()
        await tap.end()


@pytest.mark.parametrize("size", [10, PART_BYTES + 1])
async def test_what_is_no_s3_server_stores_nothing(tmp_path: Path, clock: MovableClock, size: int) -> None:
    """As a proxy or a sign-in page in its place, which answers every request with a page of its own."""
    async with answering(b"<p>Hello!</p>") as url, s3_stage({HOME: place(url)}, clock, tmp_path) as stage:
        with failing("misconfigured"):
            await stage.put(bytes(size))


@pytest.mark.parametrize("page", [b"<p>Hello!</p>", b""])
async def test_what_is_no_s3_server_deletes_nothing(tmp_path: Path, clock: MovableClock, page: bytes) -> None:
    """Or results would count as erased that are still there."""
    async with answering(page) as url, s3_stage({HOME: place(url)}, clock, tmp_path) as stage:
        with failing("misconfigured"):
            await stage.storage.delete([new_key()])


async def test_an_object_that_cannot_be_deleted_is_named(tmp_path: Path, clock: MovableClock) -> None:
    """As one under a legal hold; one that is missing counts as deleted, as all others do."""
    held, missing, other = (new_key() for _ in range(3))
    prefix = place("").prefix
    errors = "".join(
        f"<Error><Key>{prefix}{key}</Key><Code>{code}</Code></Error>"
        for key, code in ((held, "AccessDenied"), (missing, "NoSuchKey"))
    )
    answer = f"<DeleteResult>{errors}</DeleteResult>".encode()
    async with answering(answer) as url, s3_stage({HOME: place(url)}, clock, tmp_path) as stage:
        with pytest.raises(ObjectsLeft) as failure:
            await stage.storage.delete([other, held, missing])
    assert set(failure.value.reasons) == {str(held)}
    assert failure.value.fault == "denied"


@asynccontextmanager
async def answering(body: bytes) -> AsyncIterator[str]:
    """Answer every request with this body inside the block; yield the address."""

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(ConnectionError):
            await reader.readuntil(b"\r\n\r\n")
            head = b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: %d\r\n\r\n"
            writer.write(head % len(body) + body)
            await writer.drain()
        writer.close()

    async with await asyncio.start_server(answer, "127.0.0.1") as proxy:
        host, port = proxy.sockets[0].getsockname()
        yield f"http://{host}:{port}"


async def _fail_to_put(stage: Stage, key: ObjectKey) -> None:
    with pytest.raises(StorageUnavailable, match="cannot be stored") as failure:
        await stage.put(CONTENT, key)
    assert "confirmed" in failure.value.detail


async def test_a_connection_that_the_network_has_lost_is_given_up(tmp_path: Path, clock: MovableClock) -> None:
    """It is replaced before the server counts as slow, so that a new one finds it when the network is back."""
    (tmp_path / "server").mkdir()
    with network() as net:
        if not net.can_part:
            pytest.skip("only root makes hosts that can be parted")
        host = net.host("s3")
        with s3_server(tmp_path / "server", address=host.address, prefix=host.prefix) as running:
            effort = Effort(attempts=2, timeout_seconds=12)  # the first ends with the connection
            async with s3_stage({HOME: place(running.url)}, clock, tmp_path, effort) as stage:
                await stage.put(CONTENT)
                net.lose(host, net.address)
                with pytest.raises(StorageUnavailable) as failure:
                    await stage.put(CONTENT)
                assert "Connect timeout" in failure.value.detail  # of the new connection, not "Read timeout" of the old


@pytest.mark.parametrize("size", [1000, len(CONTENT)])
@pytest.mark.parametrize("attempts", [1, 2, 3])
async def test_attempts_are_bounded(wire: Wire, tmp_path: Path, clock: MovableClock, size: int, attempts: int) -> None:
    """Retries end, so that a failing server is not overwhelmed, even if the HTTP client retries once by itself."""
    effort = msgspec.structs.replace(HASTY, attempts=attempts)
    async with s3_stage({HOME: place(wire.url)}, clock, tmp_path, effort) as stage:
        wire.breaks = 1000
        with failing("down"):
            await stage.put(bytes(size))
    assert attempts <= 1000 - wire.breaks <= 2 * attempts


@pytest.mark.parametrize("size", [SMALL_BYTES, 3 * SMALL_BYTES])
async def test_the_sha256_of_a_file_is_signed_and_not_computed_if_it_is_given(
    wire: Wire, tmp_path: Path, clock: MovableClock, size: int
) -> None:
    """This server does not compare it with what it gets; others refuse the file if it is that of another one."""
    (output := tmp_path / "output").write_bytes(bytes(size))
    given = sha256(b"another").digest()
    async with s3_stage({HOME: place(wire.url)}, clock, tmp_path, HASTY) as stage:
        await stage.storage.put(new_key(), output, media_type="a/b", download_name="c", sha256=given)
    assert b"x-amz-content-sha256: %s" % given.hex().encode() in bytes(wire.sent).lower()


@pytest.mark.parametrize("size", [3, 3 * SMALL_BYTES])
async def test_a_server_that_refuses_an_object_is_asked_as_botocore_asks_it(
    tmp_path: Path, clock: MovableClock, size: int
) -> None:
    """As where a bucket takes signatures that only botocore makes; the next objects are not tried in vain.

    All attempts share the connections for writing.
    """
    asked, connections = list[bool](), list[asyncio.StreamReader]()

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        connections.append(reader)
        with suppress(ConnectionError, asyncio.IncompleteReadError):
            while head := (await reader.readuntil(b"\r\n\r\n")).lower():
                if head.startswith(b"head"):
                    writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % size)
                    continue
                if b"100-continue" in head:
                    writer.write(b"HTTP/1.1 100 Continue\r\n\r\n")
                await reader.readexactly(int(head.partition(b"content-length: ")[2].partition(b"\r\n")[0]))
                asked.append(b"amz-sdk-invocation-id" in head)
                status = b"200 OK\r\nETag: x" if asked[-1] else b"403 Forbidden"
                writer.write(b"HTTP/1.1 %s\r\nContent-Length: 0\r\n\r\n" % status)
        writer.close()

    async with await asyncio.start_server(answer, "127.0.0.1") as picky:
        host, port = picky.sockets[0].getsockname()
        async with s3_stage({HOME: place(f"http://{host}:{port}")}, clock, tmp_path, HASTY) as stage:
            await stage.put(b"1" * size)
            await stage.put(b"2" * size)
    assert asked == [False, True, True]
    assert len(connections) == 1


@pytest.mark.parametrize("size", [0, 1, SMALL_BYTES])
async def test_a_small_object_takes_its_name_and_type_along(hasty: Stage, wire: Wire, size: int) -> None:
    """For servers that ignore those of a link."""
    key = await hasty.put(bytes(size), name="Straße, 1.zip")
    head = bytes(wire.sent).partition(b"\r\n\r\n")[0].lower()
    assert b"\r\ncontent-type: application/zip\r\n" in head
    assert b"filename*=utf-8''stra%c3%9fe%2c%201.zip\r\n" in head
    assert b"amz-sdk-invocation-id" not in head
    assert (await hasty.get(key)).content == bytes(size)


async def test_a_full_server_fails_the_put_and_works_again_when_there_is_room(
    tmp_path: Path, clock: MovableClock
) -> None:
    """Stored objects are kept; one that does not fit leaves nothing."""
    with small_disk(tmp_path / "disk", kibibytes=3 * PART_BYTES >> 10) as disk, s3_server(disk) as full:
        async with s3_stage({HOME: place(full.url)}, clock, tmp_path, HASTY) as stage:
            kept = await stage.put(b"k" * (PART_BYTES - 1))
            with failing("down"):  # this server has no word for a full disk
                await stage.put(b"x" * 3 * PART_BYTES)
            assert await stage.keys() == {kept}
            assert (await stage.get(await stage.put(CONTENT))).content == CONTENT


@pytest.mark.parametrize(
    ("change", "fault"),
    [
        ({"secret_key": "another-secret"}, "denied"),
        ({"access_key": "another-key"}, "denied"),
        ({"bucket": "no-such-bucket"}, "misconfigured"),
    ],
)
async def test_a_wrong_setting_is_told_apart_from_a_server_in_trouble(
    server: S3Server, tmp_path: Path, clock: MovableClock, change: dict[str, str], fault: StorageFault
) -> None:
    """The operator's log and readiness say which it is; clients learn only that nothing was counted."""
    wrong = msgspec.structs.replace(place(server.url), **change)
    async with s3_stage({HOME: wrong}, clock, tmp_path, HASTY) as stage:
        for attempt in (stage.put(CONTENT), stage.put(b"x" * (PART_BYTES + 1)), stage.storage.check()):
            with failing(fault):
                await attempt


async def test_no_credentials_at_all_stop_the_start(
    server: S3Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Otherwise every conversion would fail."""
    environment_credentials(monkeypatch, tmp_path, "")
    keyless = msgspec.structs.replace(place(server.url), access_key="", secret_key="")
    with failing("misconfigured"):
        async with open_s3({HOME: keyless}, HASTY):
            pass


# Credentials, addresses, encryption of the way


def environment_credentials(monkeypatch: pytest.MonkeyPatch, directory: Path, profile: str) -> None:
    """Offer only the credentials of this profile in the environment."""
    (directory / "config").write_text(f"[default]\n{profile}")
    monkeypatch.setenv("AWS_CONFIG_FILE", str(directory / "config"))
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(directory / "none"))
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AWS_PROFILE"):
        monkeypatch.delenv(name, raising=False)


async def test_a_link_dies_with_temporary_credentials_and_says_so(
    server: S3Server, tmp_path: Path, clock: MovableClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Credentials of a role for half an hour give links for half an hour, whatever the retention."""
    ends = (datetime.now(UTC) + timedelta(minutes=30)).replace(microsecond=0)
    answer = {"Version": 1, "AccessKeyId": ACCESS_KEY, "SecretAccessKey": SECRET_KEY, "Expiration": ends.isoformat()}
    (tmp_path / "answer").write_text(json.dumps(answer))
    environment_credentials(monkeypatch, tmp_path, f"credential_process = cat {tmp_path / 'answer'}")
    temporary = msgspec.structs.replace(place(server.url), access_key="", secret_key="")
    async with s3_stage({HOME: temporary}, clock, tmp_path) as stage:
        key = await stage.put(CONTENT)
        link = await stage.link(key, lasts=timedelta(hours=4))
        assert link.expires_at == ends
        assert (await stage.client.get(link.url)).content == CONTENT
        assert (await stage.link(key, lasts=timedelta(minutes=5))).expires_at < ends
        clock.ahead, clock.host_off = timedelta(hours=1), timedelta(hours=-1)  # only the database's clock is wrong
        assert timedelta() <= ends + clock.ahead - (await stage.link(key)).expires_at <= timedelta(seconds=1)


async def test_clients_are_sent_to_the_public_address(
    own_server: S3Server, wire: Wire, tmp_path: Path, clock: MovableClock
) -> None:
    """The service uses an internal name, clients a public one; the signature covers the latter."""
    outer = msgspec.structs.replace(place(own_server.url), public_endpoint=wire.url)
    async with s3_stage({HOME: outer}, clock, tmp_path) as stage:
        link = await stage.link(await stage.put(CONTENT))
        assert not wire.sent
        assert link.url.startswith(f"{wire.url}/{BUCKET}/results/")
        assert (await stage.client.get(link.url)).content == CONTENT


async def test_over_tls_the_same_with_the_operators_own_authority(
    tmp_path: Path, clock: MovableClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The payload is not signed there, in one request or in parts; an unknown authority is refused."""
    certificate, key_file = tmp_path / "certificate", tmp_path / "key"
    make_certificate(certificate, key_file)
    (tmp_path / "server").mkdir()
    with s3_server(tmp_path / "server", "--cert", str(certificate), "--key", str(key_file)) as secure:
        with failing("down"):
            async with s3_stage({HOME: place(secure.url)}, clock, tmp_path, HASTY) as stage:
                await stage.put(CONTENT)
        monkeypatch.setenv("AWS_CA_BUNDLE", str(certificate))
        async with s3_stage({HOME: place(secure.url)}, clock, tmp_path) as stage:
            for content in (CONTENT, b"x" * SEVERAL_PARTS):
                link = await stage.link(await stage.put(content))
                async with httpx.AsyncClient(verify=False) as client:  # noqa: S501 - its own certificate
                    assert (await client.get(link.url)).content == content


def make_certificate(certificate: Path, key_file: Path) -> None:
    """Create a self-signed certificate for loopback."""
    command = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "1", "-subj", "/CN=127.0.0.1"]
    extra = ["-addext", "subjectAltName=IP:127.0.0.1", "-out", str(certificate), "-keyout", str(key_file)]
    try:
        subprocess.run([*command, *extra], check=True, capture_output=True)
    except FileNotFoundError:
        pytest.skip("no openssl to make a certificate with")


async def test_the_path_style_and_the_region_are_those_that_are_set() -> None:
    """On AWS, the host names bucket and region; the signature names the region."""
    home = BucketConfig(bucket="results", region="eu-central-1", access_key="access", secret_key="secret")  # noqa: S106 -- of no server
    async with open_s3({HOME: home}, HASTY) as storage:
        link = await storage.link(
            new_key(), expires_at=datetime.now(UTC) + timedelta(hours=1), download_name="a", media_type="text/csv"
        )
    assert link is not None
    parts = urlsplit(link.url)
    assert parts.netloc == "results.s3.eu-central-1.amazonaws.com"
    assert "/eu-central-1/s3/aws4_request" in parse_qs(parts.query)["X-Amz-Credential"][0]


# Buckets


async def test_each_region_has_its_own_bucket(
    server: S3Server, own_server: S3Server, tmp_path: Path, clock: MovableClock
) -> None:
    """The key says where an object is: it is stored, fetched, listed and deleted there and nowhere else."""
    home = msgspec.structs.replace(place(server.url), prefix=f"{new_key()}/")
    async with s3_stage({HOME: home, "eu": place(own_server.url)}, clock, tmp_path) as stage:
        assert stage.storage.regions == frozenset({"eu"})
        here, there = await stage.put(b"here"), await stage.put(b"there", new_key("eu"))
        assert [(await stage.get(key)).text for key in (here, there)] == ["here", "there"]
        assert len(own_server.files()) == 1
        assert await stage.keys() == {here, there}
        await stage.storage.check("eu")
        own_server.kill()
        await stage.storage.check()
        with failing("down"):
            await stage.storage.check("eu")
        own_server.start()
        await stage.storage.delete([here, there])
        assert await stage.keys() == set()


async def test_a_region_that_is_no_longer_set_is_told(s3: Stage) -> None:
    """Its objects are not looked for in another bucket."""
    with failing("misconfigured"):
        await s3.link(new_key("mars"))
    with failing("misconfigured"):
        await s3.put(CONTENT, new_key("mars"))


async def test_more_objects_than_a_page_are_all_listed_and_deleted(tmp_path: Path, clock: MovableClock) -> None:
    """Both S3 requests are limited to 1,000 objects."""
    keys = {new_key() for _ in range(2100)}
    results = tmp_path / "server" / BUCKET / "results"
    (tmp_path / "server").mkdir()
    with s3_server(tmp_path / "server") as many:
        results.mkdir()
        for key in keys:
            (results / key).write_bytes(b"x")
        async with s3_stage({HOME: place(many.url)}, clock, tmp_path) as stage:
            assert await stage.keys() == keys
            await stage.storage.delete(sorted(keys))
            assert await stage.keys() == set()


async def test_what_others_keep_in_the_bucket_is_not_ours(s3: Stage, server: S3Server) -> None:
    """Objects outside our prefix, or with other names under it, are neither listed nor touched."""
    key = await s3.put(CONTENT)
    (stored,) = (server.directory / BUCKET).glob(f"*/{key}")
    (stored.parent / "report.txt").write_text("somebody else's")
    assert await s3.keys() == {key}


async def test_a_key_that_was_not_made_here_reaches_no_bucket(s3: Stage) -> None:
    """Arbitrary keys are never used as paths in the bucket."""
    with pytest.raises(ValueError, match="not an object key"):
        await s3.storage.delete([ObjectKey("../other-bucket/object")])


@pytest.mark.parametrize("off", [timedelta(hours=2), timedelta(hours=-2)])
@pytest.mark.parametrize("wrong", ["host", "database"])
async def test_a_link_works_if_one_of_two_clocks_is_wrong(
    server: S3Server, tmp_path: Path, clock: MovableClock, wrong: str, off: timedelta
) -> None:
    """The server has the time of the host or of the database, and the link ends with the retention."""
    async with s3_stage({HOME: place(server.url)}, clock, tmp_path) as stage:
        key = await stage.put(CONTENT)
        clock.ahead = off if wrong == "database" else timedelta()
        clock.host_off = off if wrong == "host" else -off
        ends = (clock() + timedelta(minutes=30)).replace(microsecond=0)
        link = await stage.storage.link(key, expires_at=ends, download_name="a", media_type="text/csv")
        assert link is not None
        assert link.expires_at == ends
        assert (await stage.client.get(link.url)).content == CONTENT
        signed = dict(parse_qsl(urlsplit(link.url).query))
        start = datetime.strptime(signed["X-Amz-Date"], "%Y%m%dT%H%M%SZ").replace(tzinfo=UTC)
        now = clock() - clock.ahead  # of the server
        assert start <= now
        assert start + timedelta(seconds=int(signed["X-Amz-Expires"])) >= now + timedelta(minutes=29)
