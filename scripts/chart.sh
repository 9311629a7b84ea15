#!/bin/sh
# Render the Helm chart with its examples into deploy/helm/rendered, and validate the manifests. Needs helm, which is
# built with Go into .venv/bin if it is not on the PATH.
set -eu
cd "$(dirname "$0")/.."

KUBERNETES=1.33.0
PATH="$PWD/.venv/bin:$PATH"

if ! command -v helm >/dev/null 2>&1; then
  if ! command -v go >/dev/null 2>&1; then
    printf '%s\n' "helm is not installed, and Go, which would build it, is not either: install one of them" >&2
    exit 1
  fi
  printf '%s\n' "building helm; this takes some minutes"
  GOBIN="$PWD/.venv/bin" go install helm.sh/helm/v3/cmd/helm@v3.19.0
fi

digest=$(.venv/bin/python tests/deploy/chart_digest.py)
mkdir -p deploy/helm/rendered
for values in deploy/helm/examples/*.yaml; do
  helm lint --strict --kube-version "$KUBERNETES" --values "$values" deploy/helm/potok
  {
    printf '# Rendered by scripts/chart.sh from the chart with the digest %s; do not edit.\n' "$digest"
    helm template shop deploy/helm/potok --namespace default --kube-version "$KUBERNETES" --values "$values"
  } >"deploy/helm/rendered/$(basename "$values")"
done
.venv/bin/python -m pytest -q tests/deploy/test_helm.py
