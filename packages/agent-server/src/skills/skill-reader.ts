import { errorMessage } from '@slipway/common/errors/error-message.js';
import { parseJson } from '@slipway/common/json-access.js';
import { nullIf, WorkspaceFileError, type WorkspaceFiles } from '../files/workspace-files.js';
import { runGit } from '../git/run-git.js';
import { log } from '../observability.js';
import { commandOutput } from '../process-tree.js';
import { scriptInView, type ToolView } from '../tool-view.js';
import { withImports } from './rule-imports.js';
import type { SkillFile } from './skill-file.js';
import { type FoundSkills, mergeSkills, type Skill, type SkillProblem } from './skill.js';

const MAX_FILES = 100;
const MAX_FILE_BYTES = 100_000;
const MAX_CHARACTERS = 2_000_000;
const MAX_NESTED = 30;
const TIMEOUT_MS = 10_000;
const FIELDS = 4;
export const NOTHING: FoundSkills = { skills: [], problems: [] };
/** Pathspecs of rules below the folder; git leaves out what is ignored. */
const NESTED_RULES = ['.cursorrules', 'AGENTS.md', 'AGENT.md', 'CLAUDE.md', 'GEMINI.md'].map(
  (name) => `:(icase,glob)*/**/${name}`,
);

interface SkillReaderOptions {
  /** The view to read files in; a repository in it may be untrusted. */
  view: ToolView;
  files: WorkspaceFiles;
  /** No repository is searched for above this folder. */
  workspace: string;
}

/** Bounded in number and size. A broken file is a problem to report: it must not keep a conversation from starting. */
export class SkillReader {
  readonly #options: SkillReaderOptions;

  constructor(options: SkillReaderOptions) {
    this.#options = options;
  }

  /** Reads a folder and the repository around it, nearest first. @throws WorkspaceFileError outside the workspace */
  async project(folder: string): Promise<FoundSkills> {
    const real = await this.#options.files.resolve(folder);
    const [own, nested] = await Promise.all([this.#read('project', real), this.#nestedRules(real)]);
    const files = await withImports([...own, ...nested], real, (names) => this.#read('nested', real, names));
    return await toSkills(files.slice(0, MAX_FILES + 1));
  }

  async user(): Promise<FoundSkills> {
    const home = this.#options.view.environment['HOME'];
    return home === undefined ? NOTHING : await toSkills(await this.#read('user', home));
  }

  /** @throws WorkspaceFileError for a folder outside of the workspace */
  async plugin(folder: string): Promise<FoundSkills> {
    return await toSkills(await this.#read('plugin', await this.#options.files.resolve(folder)));
  }

  /** Undefined if the file is missing, or is no JSON. @throws WorkspaceFileError for one that cannot be read */
  async readJson(file: string): Promise<unknown> {
    const content = await this.#options.files.read(file, MAX_FILE_BYTES).catch(nullIf('missing'));
    return content === null ? undefined : parseJson(content.toString('utf8'));
  }

  /** Returns no skills if they cannot be read. */
  async ifReadable(scope: 'project' | 'plugin', folder: string): Promise<FoundSkills> {
    try {
      return await this[scope](folder);
    } catch (error) {
      if (error instanceof WorkspaceFileError) {
        return NOTHING;
      }
      log('warn', 'failed to read skills', { error: errorMessage(error) });
      return { skills: [], problems: [{ file: folder, reason: 'its skills cannot be read' }] };
    }
  }

  async #nestedRules(folder: string): Promise<SkillFile[]> {
    const list = ['ls-files', '-z', '--cached', '--others', '--exclude-standard', '--', ...NESTED_RULES];
    const names = (await runGit(this.#options.view, folder, list))?.split('\0') ?? [];
    const nested = names.filter((name) => name !== '').slice(0, MAX_NESTED);
    return nested.length === 0 ? [] : await this.#read('nested', folder, nested);
  }

  async #read(
    scope: 'project' | 'nested' | 'user' | 'plugin',
    folder: string,
    nested: readonly string[] = [],
  ): Promise<SkillFile[]> {
    const { view, workspace } = this.#options;
    const limits = [String(MAX_FILES), String(MAX_FILE_BYTES)];
    const script = scriptInView(view, SKILL_SCRIPT, [scope, folder, workspace, ...limits, ...nested]);
    const { output, timedOut, isCut } = await commandOutput(
      { ...script, timeoutMs: TIMEOUT_MS },
      MAX_CHARACTERS,
    );
    const files = toFiles(output);
    if (timedOut || isCut) {
      log('warn', 'failed to read all skills', { scope, timed_out: timedOut, characters: output.length });
      const limit = timedOut ? `within ${TIMEOUT_MS / 1000} seconds` : `beyond ${MAX_CHARACTERS} characters`;
      files.push({ kind: 'unread', file: folder, name: '', content: `further skills are not read ${limit}` });
    }
    return files;
  }
}

function toFiles(output: string): SkillFile[] {
  const fields = output.split('\0');
  const files: SkillFile[] = [];
  for (let index = 0; index + FIELDS < fields.length; index += FIELDS) {
    const [kind, file = '', name = '', content = ''] = fields.slice(index, index + FIELDS);
    const known = (['rules', 'rule', 'unread'] as const).find((each) => each === kind) ?? 'skill';
    files.push({ kind: known, file, name, content });
  }
  return files;
}

/** Loads the YAML parser only if there is something to parse. */
async function toSkills(files: readonly SkillFile[]): Promise<FoundSkills> {
  const distinct = withoutCopies(files);
  if (distinct.length === 0) {
    return NOTHING;
  }
  const { skillFromFile } = await import('./skill-file.js');
  const problems: SkillProblem[] = [];
  const skills = distinct.flatMap((found): Skill[] => {
    try {
      return [skillFromFile(found, MAX_FILE_BYTES)];
    } catch (error) {
      problems.push({ file: found.file, reason: errorMessage(error) });
      return [];
    }
  });
  return { skills: mergeSkills(skills), problems };
}

/** `CLAUDE.md` is often a link to `AGENTS.md`, or a copy. */
function withoutCopies(files: readonly SkillFile[]): SkillFile[] {
  const rules = new Set<string>();
  return files.filter(({ kind, content }) => {
    const isCopy = kind === 'rules' && rules.has(content);
    rules.add(content);
    return !isCopy;
  });
}

/**
 * Finds and reads skill files below a folder, as a bash script that runs where tools see the same files:
 * `scope folder limit max-files max-bytes nested…`. For each file it writes `kind\0path\0name\0content\0`; the kind
 * `unread` has the reason as its content. No repository is searched for above `limit`. The scope `nested` reads the
 * named rules files, whose names git lists, so that other files need not wait. Only regular files that lie in the
 * repository once links are followed are read: an untrusted repository could link elsewhere.
 */
const SKILL_SCRIPT = `
scope=$1 folder=$2 limit=$3 max_files=$4 max_bytes=$5
shift 5
count=0
shopt -s nullglob nocaseglob
limit=$(cd -P -- "$limit" 2>/dev/null && printf %s "$PWD")
cd -P -- "$folder" 2>/dev/null || exit 0
folder=$PWD top=$PWD

unread() {
  printf 'unread\\0%s\\0\\0%s\\0' "$1" "$2"
}

emit() {
  local kind=$1 name=$2 file=$3 real
  [ -e "$file" ] || [ -L "$file" ] || return 0
  ((count++ < max_files)) || { unread "$folder" "of its skills, only the first $max_files files are read"; exit 0; }
  [ -f "$file" ] || { unread "$file" 'it is no file'; return 0; }
  { exec 3< "$file"; } 2>/dev/null || { unread "$file" 'it cannot be opened'; return 0; }
  real=$(readlink -n /proc/self/fd/3 && printf .) || return 0
  case $real in "\${top%/}"/*) ;; *) unread "$file" 'it is a link that leaves the repository'; return 0 ;; esac
  [ -f /proc/self/fd/3 ] || return 0
  printf '%s\\0%s\\0%s\\0' "$kind" "$file" "$name"
  # One byte more than is allowed says that there are more. Variables of bash hold no zero byte.
  head -c "$((max_bytes + 1))" <&3 | tr -d '\\0'
  printf '\\0'
}

skills() {
  local base=$1 file name
  [ -d "$base" ] || return 0
  for file in "$base"/*/skill.m[d]; do
    emit skill "\${file#"$base"/}" "$file"
  done
  for file in "$base"/*.m[d] "$base"/*/*.m[d] "$base"/*/*/*.m[d]; do
    name=\${file#"$base"/}
    case \${name##*/} in README.md | [Ss][Kk][Ii][Ll][Ll].[Mm][Dd]) continue ;; esac
    # Whatever else lies in the folder of a SKILL.md belongs to it.
    case $name in */*) set -- "$base/\${name%%/*}"/skill.m[d]; [ $# -eq 0 ] || continue ;; esac
    emit skill "$name" "$file"
  done
}

if [ "$scope" = user ]; then
  for base in .agents/skills .openhands/skills .openhands/microagents .claude/skills; do
    skills "$folder/$base"
  done
  exit 0
fi

if [ "$scope" = plugin ]; then
  skills "$folder/skills"
  exit 0
fi

while [ ! -e "$top/.git" ]; do
  case $top in "$limit"/*) top=\${top%/*} ;; *) top=$folder; break ;; esac
done
if [ "$scope" = nested ]; then
  for name; do
    case $name in /*) emit rules "$name" "$name" ;; *) emit rules "$name" "$folder/$name" ;; esac
  done
  exit 0
fi

roots=("$folder")
[ "$top" = "$folder" ] || roots+=("$top")
for root in "\${roots[@]}"; do
  for file in "$root"/.cursorrule[s] "$root"/agents.m[d] "$root"/agent.m[d] "$root"/claude.m[d] "$root"/gemini.m[d]; do
    emit rules "\${file##*/}" "$file"
  done
  for file in "$root"/.github/copilot-instructions.m[d] "$root"/.windsurfrule[s] "$root"/.clinerule[s]; do
    [ -d "$file" ] || emit rules "\${file##*/}" "$file"
  done
done
for root in "\${roots[@]}"; do
  rule() {
    local name=\${2#"$1"/}
    emit rule "$3:\${name%%.*}" "$2"
  }
  base=$root/.cursor/rules
  for file in "$base"/*.md[c] "$base"/*/*.md[c]; do rule "$base" "$file" cursor; done
  base=$root/.github/instructions
  for file in "$base"/*.instructions.m[d] "$base"/*/*.instructions.m[d]; do rule "$base" "$file" copilot; done
  base=$root/.clinerules
  for file in "$base"/*.m[d]; do rule "$base" "$file" cline; done
done
for root in "\${roots[@]}"; do
  for base in .agents/skills .openhands/skills .openhands/microagents .claude/skills; do
    skills "$root/$base"
  done
done
`;
