/** The repository of the demonstration's pull request: a retry that is off by one, and the check that says so. */
export const DEMO_REPOSITORY = 'quayside/storefront';
export const DEMO_ISSUE = 479;

export const DEMO_FILES = {
  'README.md': '# Storefront\n\n`sh check.sh` runs the checks.\n',
  'AGENTS.md': 'Run `sh check.sh` before every commit.\n',
  'lookup.sh': [
    '# Looks an address up; the second try is for the hiccups of the postal service.',
    'attempts=0',
    'limit=1',
    'while [ "$attempts" -lt "$limit" ]; do',
    '  attempts=$((attempts + 1))',
    'done',
    'echo "$attempts"',
    '',
  ].join('\n'),
  'check.sh': [
    'tried=$(sh lookup.sh)',
    'if [ "$tried" -ne 2 ]; then',
    '  echo "FAIL: expected 2 attempts, got $tried"',
    '  exit 1',
    'fi',
    'echo "ok: 2 attempts"',
    '',
  ].join('\n'),
};
