#!/bin/sh
# Run the tests that use Spark with one version of PySpark, in a virtual environment of its own.
# scripts/spark.sh 4.2.1 [arguments of pytest]
set -eu
cd "$(dirname "$0")/.."

version=${1:?"which version of PySpark? for example: scripts/spark.sh 4.2.1"}
shift
directory=.venv/spark-$version
python=$directory/bin/python

unset PYTHONDONTWRITEBYTECODE
if ! "$python" -c "import potok, pyspark; assert pyspark.__version__ == '$version'" >/dev/null 2>&1; then
  printf '%s\n' "potok: installing PySpark $version and everything else into $directory, about 1.4 GB"
  rm -rf "$directory" && mkdir -p .venv
  "${PYTHON:-.venv/bin/python}" -m venv "$directory"
  # Dependency groups need pip 25.1.
  "$python" -m pip install --quiet --upgrade 'pip>=25.1'
  "$python" -m pip install --quiet --editable '.[all]' --group dev "pyspark==$version"
fi
if [ $# -eq 0 ]; then
  set -- tests/spark tests -m "spark and not browser"
fi
exec "$python" -m pytest "$@"
