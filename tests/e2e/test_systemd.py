"""systemd runs the unit in deploy/, under whose options a file is converted.

A systemd of its own is the first process of new namespaces, on a copy of this host's files that is discarded. None of
the host's services start there.
"""

import json
import os
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
UNIT = ROOT / "deploy" / "systemd" / "geomill.service"
SYSTEMD = Path("/usr/lib/systemd/systemd")
SECONDS = 600
TRIAL = """
[Unit]
Wants=geomill.service
After=geomill.service
[Service]
Type=oneshot
ExecStart=sh /srv/try
ExecStopPost=systemctl --no-block exit
StandardOutput=file:/srv/output
StandardError=file:/srv/errors
"""
GEOMILL = """#!/opt/geomill/bin/python
import sys
from service.cli import main
sys.exit(main())
"""
TRY = """
curl -fsS --retry 120 --retry-delay 1 --retry-connrefused http://127.0.0.1:8080/readyz >/srv/ready
journalctl --unit geomill --output cat >/srv/journal
grep '^ *curl ' /srv/journal | head -1 | sh >/srv/answer
systemctl stop geomill
systemctl show geomill --property Result --property ExecMainStatus
"""
MACHINE = """
mount --make-rprivate /
mount -t tmpfs tmpfs "$1"
mkdir "$1/changes" "$1/work" "$1/root"
mount -t overlay overlay -o "lowerdir=/,upperdir=$1/changes,workdir=$1/work" "$1/root"
cd "$1/root"
mount --rbind /dev dev
mount --rbind /sys sys
mount -t proc proc proc
for directory in run tmp; do mount -t tmpfs tmpfs "$directory"; done
mount --bind "$2" srv
mkdir -p opt/checkout opt/packages old
mount --bind "$4" opt/checkout
mount --bind "$5" opt/packages
ip link set lo up

chroot . useradd --system --home-dir /var/lib/geomill --shell /usr/sbin/nologin geomill
chroot . "$3" -m venv --without-pip /opt/geomill
cp srv/test_run.pth opt/geomill/lib/python3*/site-packages/
install -m 0755 srv/geomill opt/geomill/bin/

rm -rf etc/systemd/system
mkdir -p etc/systemd/system/trial.target.wants
cp opt/checkout/deploy/systemd/geomill.service etc/systemd/system/
cp srv/trial.service etc/systemd/system/
ln -s ../trial.service etc/systemd/system/trial.target.wants/
echo '[Unit]' >etc/systemd/system/trial.target
pivot_root . old
umount --lazy old
container=other exec "$6" --system --unit=trial.target
"""


@pytest.mark.timeout(SECONDS * 2)
@pytest.mark.skipif(os.geteuid() != 0, reason="only root may start a systemd")
def test_a_file_is_converted_under_the_options_of_the_unit(tmp_path: Path) -> None:
    """The converter has all layers of isolation, and the service ends in order when systemd stops it."""
    if not SYSTEMD.exists():
        pytest.skip("systemd is not installed")
    python = shutil.which(f"python3.{sys.version_info.minor}", path="/usr/bin")
    if python is None:
        pytest.skip("no Python that other users can execute")
    machine, shared = tmp_path / "machine", tmp_path / "shared"
    machine.mkdir()
    shared.mkdir()
    given = {"trial.service": TRIAL, "try": TRY, "geomill": GEOMILL, "test_run.pth": "/opt/checkout\n/opt/packages\n"}
    for name, text in given.items():
        (shared / name).write_text(text)
    namespaces = ("unshare", "--mount", "--pid", "--fork", "--kill-child", "--net", "--uts", "--ipc", "--cgroup")
    places = (machine, shared, python, ROOT, sysconfig.get_path("purelib"), SYSTEMD)
    done = subprocess.run(
        [*namespaces, "sh", "-euc", MACHINE, "sh", *map(str, places)],
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )
    told = {path.name: path.read_text(encoding="utf-8") for path in shared.iterdir()}
    assert "answer" in told, (done, told)
    assert told["answer"], told["journal"]
    assert json.loads(told["answer"])["success"], told
    assert told["output"].splitlines() == ["Result=success", "ExecMainStatus=0"], told
    [ready] = [json.loads(line) for line in told["journal"].splitlines() if '"server.ready"' in line]
    assert ready["launcher"] == "fork server"
