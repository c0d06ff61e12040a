#!/bin/sh
# Build the wheel, install it into an empty environment and use it as somebody does who has no checkout: what a
# wheel lacks (a module, an example, a dependency) no test of the source tree notices.
#
#     sh scripts/wheel-check.sh CONSTRAINTS
set -eu

constraints=$(realpath "$1")
root=$(realpath "$(dirname "$0")/..")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
unset PYTHONPATH
began=$(date +%s)

"$(sh "$root/scripts/prerequisites.sh")" -m venv "$work/venv"
pip="$work/venv/bin/python -m pip --disable-pip-version-check --quiet"
$pip wheel --no-deps --wheel-dir "$work" "$root"
$pip install --no-compile -c "$constraints" "$work"/penstock_spark-*.whl

ls "$work"/venv/lib/python*/site-packages/penstock_spark-*.dist-info/licenses/LICENSE >/dev/null

# From a directory of its own, so that the source tree is no part of what Python sees.
cd "$work"
"$work/venv/bin/python" -I -c 'import penstock, sys; sys.exit(not penstock.__file__.startswith(sys.prefix))' || {
    echo "The wheel's penstock is not what Python imports" >&2
    exit 1
}
PATH="$work/venv/bin:$PATH"
penstock --version
penstock init shop
cd shop
penstock check
penstock run
penstock sql --format csv "SELECT * FROM main.customers ORDER BY customer" | tee "$work/customers"
[ "$(wc -l <"$work/customers")" -gt 1 ]
cd ..
penstock init flights --example flights
penstock check --project flights
echo "The wheel works in an empty environment ($(($(date +%s) - began)) s)."
