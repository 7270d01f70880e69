import { runCommand } from '../process-tree.js';
import { scriptInView, type ToolView, VIEW_START } from '../tool-view.js';

const MAX_REPOSITORIES = 20;
const TIMEOUT_MS = 10_000;
/** Linux has no longer names. */
const MAX_NAME_BYTES = 256;
const SCRIPT = `
cd -P -- "$1" 2>/dev/null || exit 0
shopt -s nullglob
count=0
for git in ./*/.git; do
  name=\${git#./} name=\${name%/.git}
  [ -L "./$name" ] && continue
  ((++count > $2)) && exit 0
  printf '%s\\0' "$name"
done
`;

/** Names of the folders directly in a folder that are repositories of their own. */
export async function nestedRepositories(view: ToolView, folder: string): Promise<string[]> {
  const output: string[] = [];
  await runCommand({
    command: scriptInView(view, SCRIPT, [folder, String(MAX_REPOSITORIES)]),
    cwd: VIEW_START,
    env: { ...view.environment, LC_ALL: 'C' },
    timeoutMs: TIMEOUT_MS,
    onOutput: (stream, text) => {
      if (stream === 'stdout') {
        output.push(text);
      }
    },
  });
  return output
    .join('')
    .slice(0, MAX_REPOSITORIES * MAX_NAME_BYTES)
    .split('\0')
    .slice(0, -1);
}
