#!/bin/sh
# Run a command that compiles the core:  with-rust.sh COMMAND [ARGUMENT ...]
#
# Compiling takes cargo, and a C compiler to link. What is missing, Debian's and Ubuntu's root gets
# from the system's packages. Elsewhere maturin fetches Rust for itself, if the network lets it.
set -u

minor=$(sed -n 's/^rust-version = "1\.\([0-9]*\)"$/\1/p' "$(dirname "$0")/Cargo.toml")

say() { echo "graphmatch: $*" >&2; }

stop() {
    say "install Rust 1.$minor or later (cargo, rustc) and a C compiler (cc), then run this again."
    exit 1
}

rust_is_there() {
    version=$(cargo --version 2>/dev/null) && rustc --version >/dev/null 2>&1 &&
        [ "$(echo "$version" | cut -d . -f 2)" -ge "$minor" ]
}

linker_is_there() { command -v cc >/dev/null; }

# Print which of the system's packages hold a Rust that is new enough.
rust_packages() {
    for suffix in "" -web; do
        there=$(apt-cache policy "cargo$suffix" | sed -n 's/^ *Candidate: 1\.\([0-9]*\)\..*/\1/p')
        if [ "${there:-0}" -ge "$minor" ]; then
            echo "cargo$suffix rustc$suffix"
            return
        fi
    done
}

install_packages() {
    apt-get update -qq >&2
    packages=$(linker_is_there || echo gcc libc6-dev; rust_is_there || rust_packages)
    [ -n "$packages" ] || return
    say "installing what compiles the core, by apt-get:" $packages
    # What is there stays: a Rust that conflicts is the user's.
    DEBIAN_FRONTEND=noninteractive apt-get install -qq --yes --no-remove \
        --no-install-recommends $packages >/dev/null
}

rust_is_there || PATH="${HOME:-}/.cargo/bin:$PATH"
if ! { rust_is_there && linker_is_there; }; then
    [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null && install_packages
fi
linker_is_there || stop
rust_is_there && exec "$@"
command -v cargo >/dev/null && stop # too old, but maturin would take it
say "there is no cargo: maturin tries to fetch it."
"$@" || stop
