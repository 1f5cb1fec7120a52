#!/usr/bin/env bash
# Writes $MARKDOWN below pull request $PULL_REQUEST: in place of its earlier comment where there is one. A token that
# may not comment, as in a pull request from a fork, is no failure of the gate.
set -uo pipefail
[ -s "${MARKDOWN:-}" ] || exit 0
comments=repos/$GITHUB_REPOSITORY/issues/$PULL_REQUEST/comments
mine='.[] | select(.user.type == "Bot" and (.body | startswith("<!-- gpumemprof gate -->"))) | .id'
earlier=$(gh api --paginate "$comments" --jq "$mine" | head -n 1)
if [ -n "$earlier" ]; then
  gh api --silent --method PATCH "repos/$GITHUB_REPOSITORY/issues/comments/$earlier" -F "body=@$MARKDOWN"
else
  gh api --silent --method POST "$comments" -F "body=@$MARKDOWN"
fi || echo "::warning::gpumemprof could not comment on the pull request: the job needs the permission pull-requests: write"
