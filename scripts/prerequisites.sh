#!/bin/sh
# What must be there before anything is installed: Java 17+ (Spark needs it) and Python 3.11+.
# Prints the Python to use on stdout, or one message on stderr. Installs nothing.
set -eu

fail() {
    printf '%s\n' "$@" >&2
    exit 2
}

java_help='  Debian, Ubuntu   sudo apt-get install openjdk-17-jre-headless
  Fedora           sudo dnf install java-17-openjdk-headless
  macOS            brew install openjdk@17   (then follow what it prints about the PATH)
  others           https://adoptium.net
If it is installed elsewhere, set JAVA_HOME to its directory.'

# The same order as Spark's own launcher: JAVA_HOME first, then the PATH.
java=java
[ -z "${JAVA_HOME:-}" ] || java=$JAVA_HOME/bin/java

# macOS ships a java that only says that there is none: ask it, do not just look for it.
if ! said=$("$java" -version 2>&1); then
    fail "Penstock needs Java 17 or newer, and '$java' does not run." "$java_help"
fi
version=$(printf '%s\n' "$said" | sed -n 's/.* version "\([^"]*\)".*/\1/p' | head -n 1)
major=$(printf '%s\n' "$version" | sed -e 's/^1\.//' -e 's/[^0-9].*//')
if [ "${major:-0}" -lt 17 ]; then
    fail "Penstock needs Java 17 or newer, and '$java' is version ${version:-unknown}." "$java_help"
fi

for python in ${PYTHON:-python3 python3.14 python3.13 python3.12 python3.11}; do
    if "$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
        if ! "$python" -c 'import ensurepip, venv' 2>/dev/null; then
            fail "'$python' cannot make virtual environments (the modules venv and ensurepip)." \
                "  Debian, Ubuntu   sudo apt-get install python3-venv"
        fi
        printf '%s\n' "$python"
        exit 0
    fi
done
fail "Penstock needs Python 3.11 or newer; none of: ${PYTHON:-python3, python3.11 to python3.14}." \
    "  Debian, Ubuntu   sudo apt-get install python3.11 python3.11-venv" \
    "  macOS            brew install python@3.13" \
    "If it is installed elsewhere: make PYTHON=/path/to/python3"
