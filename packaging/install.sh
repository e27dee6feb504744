#!/bin/sh
# Installs @PROGRAM@ @VERSION@ for one user: downloads the archive of this platform and SHA256SUMS, and installs nothing
# unless the checksum is right.
set -eu

program=@PROGRAM@
version=@VERSION@
platforms='@PLATFORMS@'
from=${CONTEXTURE_DOWNLOADS:-@DOWNLOADS@}
prefix=${HOME:-}/.local
uninstall=no

fail() {
    printf 'error: %s\n' "$1" >&2
    [ $# -lt 2 ] || printf 'hint: %s\n' "$2" >&2
    exit 1
}

usage() {
    cat <<USAGE
Usage: install.sh [--from URL|DIR] [--prefix DIR] [--uninstall]

  --from URL|DIR   where the archive and SHA256SUMS are (also CONTEXTURE_DOWNLOADS)
  --prefix DIR     where bin and share are (default: ~/.local)
  --uninstall      remove what was installed there; what $program keeps in
                   ~/.local/state/$program stays
USAGE
}

while [ $# -gt 0 ]; do
    case $1 in
        --from | --prefix)
            [ $# -gt 1 ] || fail "$1 asks for a value" "install.sh --help"
            case $1 in --from) from=$2 ;; --prefix) prefix=$2 ;; esac
            shift 2
            ;;
        --uninstall) uninstall=yes && shift ;;
        --help | -h) usage && exit 0 ;;
        *) fail "\`$1\` is no option" "install.sh --help" ;;
    esac
done
case $prefix in /*) ;; *) fail "the prefix \`$prefix\` is no absolute path" "name it with --prefix" ;; esac
# What was installed is listed here, for removing it.
list=$prefix/share/$program/installed

remove() {
    [ -f "$list" ] || fail "nothing of $program is installed in $prefix" "name where it is with --prefix"
    while IFS= read -r path; do
        case $path in "$prefix"/*) rm -f -- "$path" ;; esac
    done <"$list"
    rm -f -- "$list"
    # Only what is empty goes.
    for directory in "share/$program" share/man/man1 share/man share/bash-completion/completions share/bash-completion \
        share/zsh/site-functions share/zsh share/fish/vendor_completions.d share/fish share bin; do
        rmdir -- "$prefix/$directory" 2>/dev/null || :
    done
    echo "$program is removed from $prefix; what it keeps in \${XDG_STATE_HOME:-~/.local/state}/$program is still there"
}

platform() {
    system=$(uname -s)
    machine=$(uname -m)
    case $machine in
        x86_64 | amd64) machine=x64 ;;
        aarch64 | arm64) machine=arm64 ;;
    esac
    found=$(echo "$system" | tr '[:upper:]' '[:lower:]')-$machine
    for known in $platforms; do
        [ "$known" != "$found" ] || return 0
    done
    fail "$program has no archive for $found; there are archives for $platforms" \
        "with Rust and a C compiler, \`cargo install --locked --path crates/contexture-cli\` in a clone of its repository builds it"
}

fetch() {
    case $from in
        http://* | https://*)
            if command -v curl >/dev/null; then
                curl --fail --silent --show-error --location --output "$2" "${from%/}/$1" || fail "download ${from%/}/$1"
            elif command -v wget >/dev/null; then
                wget --quiet --output-document "$2" "${from%/}/$1" || fail "download ${from%/}/$1"
            else
                fail "neither curl nor wget is there" "install one of them, or download $1 and SHA256SUMS and name their directory with --from"
            fi
            ;;
        *) cp -- "${from#file://}/$1" "$2" || fail "read ${from#file://}/$1" ;;
    esac
}

checksum() {
    if command -v sha256sum >/dev/null; then
        sha256sum "$1"
    elif command -v shasum >/dev/null; then
        shasum -a 256 "$1"
    else
        fail "neither sha256sum nor shasum is there, so the download cannot be checked" "install coreutils"
    fi | cut -d ' ' -f 1
}

put() {
    mkdir -p -- "$(dirname -- "$2")"
    # Written beside its place and renamed: a program that runs goes on, and half a file is never there.
    cp -- "$1" "$2.new"
    chmod "$3" "$2.new"
    mv -f -- "$2.new" "$2"
    printf '%s\n' "$2" >>"$work/installed"
}

if [ $uninstall = yes ]; then
    remove
    exit 0
fi
[ -n "$from" ] || fail "where the archives of $program are is not known" "name the address or directory with --from"
platform
archive=$program-$version-$found.tar.gz
work=$(mktemp -d)
trap 'rm -rf -- "$work"' EXIT
fetch SHA256SUMS "$work/SHA256SUMS"
fetch "$archive" "$work/$archive"
expected=$(awk -v name="$archive" '$2 == name || $2 == "*" name { print $1 }' "$work/SHA256SUMS")
[ -n "$expected" ] || fail "SHA256SUMS has no line for $archive, so nothing was installed" "is $from the address of version $version?"
actual=$(checksum "$work/$archive")
[ "$expected" = "$actual" ] || fail "the checksum of $archive is wrong, so nothing was installed" "download it again; if that does not help, somebody has changed it"
tar -xzf "$work/$archive" -C "$work"
root=$work/${archive%.tar.gz}
"$root/bin/$program" --version >/dev/null || fail "$program does not run on this system, so nothing was installed" \
    "it needs glibc 2.17 or newer, and $work where programs may run (set TMPDIR); or build it from its sources"
put "$root/bin/$program" "$prefix/bin/$program" 755
for page in "$root"/share/man/man1/*; do
    put "$page" "$prefix/share/man/man1/$(basename -- "$page")" 644
done
put "$root/completions/$program.bash" "$prefix/share/bash-completion/completions/$program" 644
put "$root/completions/$program.zsh" "$prefix/share/zsh/site-functions/_$program" 644
put "$root/completions/$program.fish" "$prefix/share/fish/vendor_completions.d/$program.fish" 644
mkdir -p -- "$(dirname -- "$list")"
cp -- "$work/installed" "$list"
echo "$program $version is installed as $prefix/bin/$program"
case :$PATH: in
    *:"$prefix/bin":*) ;;
    *) echo "hint: $prefix/bin is not on the PATH; add it in your shell's profile" ;;
esac
