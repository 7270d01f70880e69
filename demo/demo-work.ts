import type { FakeRepository, FakeWorld } from '../test/fakes/fake-world.js';

/** What there is to do about a script of a repository; `sh SCRIPT ARGUMENTS` prints `printed` once it is done. */
export interface DemoWork {
  repository: string;
  /** Number of the pull request or the issue. */
  number: number;
  /** Branch of the pull request, or of the one that an agent opens for the issue. */
  branch: string;
  /** Full name of the fork that has it. */
  fork?: string;
  kind: 'conflict' | 'check' | 'comment' | 'open' | 'issue';
  script: string;
  /** The script on main when the branch went off, or null if the branch adds it. An issue has no other. */
  main: string | null;
  /** The script on the branch. */
  branched?: string;
  /** The script on main since then. */
  moved?: string;
  check: { arguments: string; printed: string };
  /** A reviewer's. */
  comment?: string;
  /** What the agent does, for sed(1), and the subject of its commit. */
  edit: string;
  subject: string;
}

const LOOKUP = `# The second try is for the hiccups of the postal service.
attempts=0
limit=1
while [ "$attempts" -lt "$limit" ]; do
  attempts=$((attempts + 1))
done
echo "$attempts"`;
const UNWRITTEN = '# Usage: still to be written.';

export const DEMO_WORK: readonly DemoWork[] = [
  {
    repository: 'quayside/storefront',
    number: 482,
    branch: 'feat/time-zones',
    kind: 'conflict',
    script: 'windows.sh',
    main: 'echo "$1 to $2"',
    branched: 'echo "$1 to $2 ($3)"',
    moved: 'echo "between $1 and $2"',
    check: { arguments: '9 11 Kiel', printed: 'between 9 and 11 (Kiel)' },
    edit: String.raw`/^<<<<<<</,/^>>>>>>>/c\echo "between $1 and $2 ($3)"`,
    subject: 'Merge main: keep its words and the time zone',
  },
  {
    repository: 'quayside/storefront',
    number: 479,
    branch: 'fix/address-lookup',
    kind: 'check',
    script: 'lookup.sh',
    main: LOOKUP,
    check: { arguments: '', printed: '2' },
    edit: 's/limit=1/limit=2/',
    subject: 'fix: try the address lookup twice',
  },
  {
    repository: 'quayside/storefront',
    number: 471,
    branch: 'fix/leading-zero',
    kind: 'issue',
    script: 'postcode.sh',
    main: 'expr "$1" : "[1-9][0-9]*$" >/dev/null && echo valid || echo invalid',
    check: { arguments: '01067', printed: 'valid' },
    edit: String.raw`s/\[1-9\]//`,
    subject: 'fix: take postcodes with a leading zero',
  },
  {
    repository: 'quayside/driver-app',
    number: 91,
    branch: 'feat/keep-scans',
    kind: 'comment',
    script: 'scan.sh',
    main: null,
    branched: 'echo "kept $1"',
    check: { arguments: '4711', printed: 'kept 4711' },
    comment: 'And a scan that read nothing? That is no parcel.',
    edit: 's/$1/${1:?nothing was read}/',
    subject: 'fix: refuse a scan that read nothing',
  },
  {
    repository: 'quayside/driver-app',
    number: 88,
    branch: 'fix/blank-map',
    kind: 'issue',
    script: 'map.sh',
    main: '[ "$1" = awake ] && echo drawn || echo blank',
    check: { arguments: 'woken', printed: 'drawn' },
    edit: 's/= awake/!= asleep/',
    subject: 'fix: draw the map unless the phone sleeps',
  },
  {
    repository: 'quayside/label-printer',
    number: 17,
    branch: 'feat/half-sheets',
    fork: 'nadia/label-printer',
    kind: 'open',
    script: 'sheet.sh',
    main: null,
    branched: [UNWRITTEN, 'echo "$(($1 / 2))x$2"'].join('\n'),
    check: { arguments: '297 210', printed: '148x210' },
    edit: 's/still to be written./sh sheet.sh HEIGHT WIDTH, in millimetres/',
    subject: 'docs: say how half sheets are printed',
  },
  {
    repository: 'quayside/platform/routing',
    number: 204,
    branch: 'feat/bridge-closures',
    kind: 'check',
    script: 'route.sh',
    main: 'echo bridge',
    branched: '[ "$1" = open ] && echo ferry || echo bridge',
    check: { arguments: 'closed', printed: 'ferry' },
    edit: 's/= open/= closed/',
    subject: 'fix: take the ferry while the bridge is closed',
  },
  {
    repository: 'quayside/platform/routing',
    number: 196,
    branch: 'fix/merged-tours',
    kind: 'issue',
    script: 'merge.sh',
    main: String.raw`printf "%s\n" "$@" | sort | paste -s -d " " -`,
    check: { arguments: '5 7 5', printed: '5 7' },
    edit: 's/sort/sort -u/',
    subject: 'fix: stop once where tours meet',
  },
  {
    repository: 'quayside/platform/billing',
    number: 133,
    branch: 'feat/vat-per-line',
    kind: 'comment',
    script: 'vat.sh',
    main: null,
    branched: 'echo $((($1 * 19 + 50) / 100))',
    check: { arguments: '250', printed: '48' },
    comment: 'The rate must be given: books have another one.',
    edit: 's/19/${2:-19}/',
    subject: 'feat: take the rate of a line',
  },
  {
    repository: 'quayside/platform/billing',
    number: 131,
    branch: 'chore/archive',
    kind: 'conflict',
    script: 'archive.sh',
    main: 'echo "/var/invoices/$1"',
    branched: 'echo "/archive/$1"',
    moved: 'echo "/var/invoices/$1.pdf"',
    check: { arguments: '17', printed: '/archive/17.pdf' },
    edit: String.raw`/^<<<<<<</,/^>>>>>>>/c\echo "/archive/$1.pdf"`,
    subject: 'Merge main: invoices are PDF in the new archive, too',
  },
  {
    repository: 'quayside/legacy-erp',
    number: 1204,
    branch: 'feat/stock-export',
    kind: 'comment',
    script: 'export.sh',
    main: null,
    branched: 'echo "$1: every 5 minutes"',
    check: { arguments: 'Kiel', printed: 'Kiel: every 5 minutes' },
    comment: 'It exports nothing where no warehouse is given. Refuse that.',
    edit: 's/$1/${1:?no warehouse}/',
    subject: 'fix: refuse an export of no warehouse',
  },
  {
    repository: 'quayside/edi-gateway',
    number: 56,
    branch: 'feat/utf-8',
    kind: 'open',
    script: 'charset.sh',
    main: null,
    branched: [UNWRITTEN, 'echo "${1:-UTF-8}"'].join('\n'),
    check: { arguments: '', printed: 'UTF-8' },
    edit: 's/still to be written./sh charset.sh [CHARSET], UTF-8 by default/',
    subject: 'docs: say which charset messages have',
  },
];

/** A script of a check. */
export function checkOf({ script, check }: DemoWork): string {
  const command = `sh ${script} ${check.arguments}`.trim();
  return `printed=$(${command})
if [ "$printed" != "${check.printed}" ]; then
  echo "FAIL: ${command}: expected ${check.printed}, got $printed"
  exit 1
fi
echo "ok: ${command}"
`;
}

interface DemoCommit {
  repository: string;
  branch: string;
  files: Record<string, string>;
}

/** All that the repositories of a host contain, oldest first. */
export function commitsOf({ repositories }: FakeWorld): DemoCommit[] {
  return repositories.flatMap((repository) => {
    const work = DEMO_WORK.filter((each) => each.repository === repository.name);
    const branched = DEMO_WORK.filter((each) => (each.fork ?? each.repository) === repository.name);
    const to = (branch: string, files: Record<string, string>) => ({
      repository: repository.name,
      branch,
      files,
    });
    return [
      // A fork begins as a copy.
      ...(repository.forkOf === undefined
        ? [
            to('main', {
              ...basics(repository),
              ...Object.fromEntries(work.flatMap((each) => file(each, each.main))),
            }),
          ]
        : []),
      ...branched
        .filter(({ kind }) => kind !== 'issue')
        .map((each) => {
          const scripts = Object.fromEntries(file(each, each.branched));
          return to(each.branch, { ...scripts, [`checks/${each.script}`]: checkOf(each) });
        }),
      ...work
        .filter(({ moved }) => moved !== undefined)
        .map((each) => to('main', Object.fromEntries(file(each, each.moved)))),
    ];
  });
}

function file({ script }: DemoWork, content: string | null | undefined): [string, string][] {
  return content === null || content === undefined ? [] : [[script, `${content}\n`]];
}

function basics({ name, rootEntries = [] }: FakeRepository): Record<string, string> {
  const instructions = rootEntries.filter((entry) => ['AGENTS.md', 'CLAUDE.md'].includes(entry));
  return {
    'README.md': `# ${name.split('/').at(-1)}\n\n\`sh check.sh\` runs the checks.\n`,
    'check.sh': 'for check in checks/*.sh; do\n  sh "$check" || exit 1\ndone\n',
    'checks/readme.sh': 'test -s README.md && echo "ok: README.md"\n',
    ...Object.fromEntries(instructions.map((entry) => [entry, 'Run `sh check.sh` before every commit.\n'])),
  };
}
