#!/bin/sh
# Make a virtual environment and install into it, and say what is going on: the first time, Spark alone is a
# download of 400 MB.
#
#     sh scripts/install.sh VENV PIP-ARGUMENT...
set -eu

venv=$1
shift
began=$(date +%s)
python=$(sh "$(dirname "$0")/prerequisites.sh")

echo "Making $venv with $("$python" --version) ..."
"$python" -m venv "$venv"

echo "Installing into $venv ..."
status=$venv/.pip-status
# Of all that pip prints, what is large or takes long. Its errors go to stderr, all of them. Python compiles what
# is used when it is used: compiling everything takes a tenth of the time.
{
    code=0
    "$venv/bin/python" -m pip install --disable-pip-version-check --no-compile \
        --progress-bar off "$@" || code=$?
    echo "$code" >"$status"
} | awk '
    function say(text) { print "  " text; fflush() }
    /^ *Downloading .* \([0-9][0-9]+\.[0-9]* MB\)/ {
        sub(/-(cp|py)[0-9][^ ]*\.whl|\.tar\.gz/, "")
        say("downloading " $2 " " $3 " " $4)
    }
    /^ *Building wheel for .*: started/ { say("building " $4) }
    /^Installing collected packages/ { say("unpacking " NF - 3 " packages") }
'
code=$(cat "$status")
rm -f "$status"
[ "$code" = 0 ] || exit "$code"
echo "Installed in $(($(date +%s) - began)) s."
