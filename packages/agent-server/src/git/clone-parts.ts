import type { ToolView } from '../tool-view.js';
import {
  describeClone,
  PrivateRepository,
  type PrivateRepositoryOptions,
  handOver,
  TAKE_OVER,
} from './private-repository.js';

/** Limit per repository, submodules of submodules included. */
const MAX_SUBMODULES = 50;
const MAX_DEPTH = 3;
const TOO_MANY_SUBMODULES = `Of submodules, ${MAX_SUBMODULES} are fetched at most, ${MAX_DEPTH} levels deep: there are more.`;
const MAX_TEXT = 500;

interface PartialRepository {
  folder: string;
  /** The path shown to the user; empty for the outermost repository. */
  path: string;
  url: string;
  commit: string;
}

interface ClonePartsOptions {
  /** Both may take long and need much space. */
  submodules: boolean;
  lfs: boolean;
  transfer: PrivateRepositoryOptions;
  view: ToolView;
  /** Monotonic milliseconds. */
  deadlineAt: number;
}

// `folder path name url format commit default-branch`; each folder is checked from inside, because it may be a link.
const ADD_SUBMODULE = `
set -e
cd -P -- "$1"
top=$PWD path=$2 name=$3 url=$4 format=$5 commit=$6 default=$7
cd -P -- "./$path"
[ "$PWD" = "$top/$path" ]
shopt -s nullglob dotglob
entries=(*)
[ \${#entries[@]} -eq 0 ]
git init --quiet \${format:+"--object-format=$format"}
${TAKE_OVER}
git update-ref --no-deref HEAD "$commit"
git reset --quiet --hard
cd -- "$top"
git config --local "submodule.$name.url" "$url"
git config --local "submodule.$name.active" true
`;

/** `folder`: takes the files that pointers stand for out of what was handed over, without asking any server. */
const ADD_LFS_FILES = `
set -e
cd -- "$1"
tar -xf - -C "$(git rev-parse --git-dir)"
git lfs install --local --skip-repo >/dev/null
git lfs checkout
`;

const MAX_NOTICES = 10;
const MAX_REASON = 300;
const NO_GIT_LFS =
  'Files of Git LFS are not fetched, there are pointers in their place: Git LFS is not installed in the sandbox.';

/** Adds what a clone lacks to its repository, and keeps in mind what could not be added. */
export class CloneParts {
  readonly #notices = new Set<string>();
  readonly #options: ClonePartsOptions;
  #left = MAX_SUBMODULES;

  constructor(options: ClonePartsOptions) {
    this.#options = options;
  }

  async add(own: PrivateRepository, repository: PartialRepository, depth = 0): Promise<void> {
    if (this.#options.lfs) {
      await this.#addLfsFiles(own, repository);
    }
    if (!this.#options.submodules) {
      return;
    }
    const { submodules, notices } = await readSubmodules(own, repository.commit, repository.url);
    this.#tell(...notices);
    for (const submodule of submodules) {
      if (this.#left === 0 || depth === MAX_DEPTH) {
        this.#tell(TOO_MANY_SUBMODULES);
        return;
      }
      this.#left -= 1;
      await this.#addSubmodule(repository, submodule, depth);
    }
  }

  async #addSubmodule(parent: PartialRepository, submodule: Submodule, depth: number): Promise<void> {
    const { name, path, url, commit } = submodule;
    const shown = [parent.path, path].filter((part) => part !== '').join('/');
    const outcome = await PrivateRepository.clone(
      { ...this.#options.transfer, ...this.#limits() },
      url,
      async (own) => {
        const object = `${commit}^{commit}`;
        if ((await own.ask('cat-file', '-e', object)) === null) {
          const fetched = await own.git('fetch', '--no-write-fetch-head', '--', url, commit);
          if (!fetched.ok) {
            return fetched;
          }
        }
        const content = await describeClone(own, null);
        await own.packRefs(content?.refs ?? new Map());
        const added = await handOver(own, ['objects', 'packed-refs'], this.#options.view, {
          script: ADD_SUBMODULE,
          args: [parent.folder, path, name, url, content?.format ?? '', commit, content?.defaultBranch ?? ''],
          ...this.#limits(),
        });
        if (added.ok) {
          const folder = `${parent.folder}/${path}`;
          await this.add(own, { folder, path: shown, url, commit }, depth + 1);
        }
        return added;
      },
    );
    if (!outcome.ok) {
      this.#tell(`The submodule ${shown} could not be fetched: ${reasonOf(outcome)}`);
    }
  }

  async #addLfsFiles(own: PrivateRepository, { folder, url, commit }: PartialRepository): Promise<void> {
    const attributes = [':(glob)**/.gitattributes'];
    const filters = ['grep', '--quiet', '--fixed-strings', 'filter=lfs', commit, '--', ...attributes];
    if ((await own.ask(...filters)) === null) {
      return;
    }
    if ((await own.ask('lfs', 'version')) === null) {
      this.#tell(NO_GIT_LFS);
      return;
    }
    // What the repository configures itself could name another server.
    const server = `lfs.url=${url.replace(/(\.git)?\/*$/, '.git')}/info/lfs`;
    const settings = ['-c', server, '-c', 'lfs.basictransfersonly=true'];
    const fetched = await own.git(...settings, 'lfs', 'fetch', 'origin', commit);
    const outcome = fetched.ok
      ? await handOver(own, ['lfs'], this.#options.view, {
          script: ADD_LFS_FILES,
          args: [folder],
          ...this.#limits(),
        })
      : fetched;
    if (!outcome.ok) {
      this.#tell(
        `Files of Git LFS could not be fetched, there are pointers in their place: ${reasonOf(outcome)}`,
      );
    }
  }

  /** The first of them: a reader needs no list of fifty. */
  get notices(): string[] {
    const all = [...this.#notices];
    const more = all.length - MAX_NOTICES;
    return more > 0 ? [...all.slice(0, MAX_NOTICES), `There are ${more} more notes about submodules.`] : all;
  }

  #tell(...notices: string[]): void {
    notices.forEach((notice) => this.#notices.add(notice));
  }

  #limits(): { timeoutMs: number; signal: AbortSignal | undefined } {
    const { deadlineAt, transfer } = this.#options;
    return { timeoutMs: Math.max(1, deadlineAt - performance.now()), signal: transfer.signal };
  }
}

function reasonOf({ timedOut, output }: { timedOut: boolean; output: string }): string {
  return timedOut ? 'it took too long.' : (output.split('\n').at(-1) ?? '').slice(0, MAX_REASON);
}

/** A submodule that may be fetched with the credentials of its repository. */
interface Submodule {
  name: string;
  path: string;
  /** http(s), at the origin of the repository. */
  url: string;
  commit: string;
}

// The submodules of a commit, and why others are left out. `.gitmodules` may name any server or file, so only those at
// the repository's own origin are taken, by whatever protocol they are named.
async function readSubmodules(
  repository: PrivateRepository,
  commit: string,
  parentUrl: string,
): Promise<{ submodules: Submodule[]; notices: string[] }> {
  const settings = await repository.ask(
    'config',
    '--blob',
    `${commit}:.gitmodules`,
    '-z',
    '--get-regexp',
    String.raw`^submodule\..*\.(path|url)$`,
  );
  const named = [...parseSettings(settings ?? '')];
  const submodules: Submodule[] = [];
  const notices = named.length > MAX_SUBMODULES ? [TOO_MANY_SUBMODULES] : [];
  for (const [name, { path, url }] of named.slice(0, MAX_SUBMODULES)) {
    const address = submoduleUrl(url, parentUrl);
    const linked = isUsable(name) && isUsable(path) ? await linkedCommit(repository, commit, path) : null;
    if (linked !== null && address !== null) {
      submodules.push({ name, path, url: address, commit: linked });
    } else if (linked !== null) {
      notices.push(`The submodule ${path} is not fetched: it is on another server than its repository.`);
    }
  }
  return { submodules, notices };
}

/** `git config -z`: key, line break, value, zero byte. */
function parseSettings(output: string): Map<string, { path: string; url: string }> {
  const found = new Map<string, { path: string; url: string }>();
  for (const entry of output.split('\0')) {
    const [, name, member, value] = /^submodule\.(.*)\.(path|url)\n(.*)$/s.exec(entry) ?? [];
    if (name !== undefined && value !== undefined) {
      const before = found.get(name) ?? { path: '', url: '' };
      found.set(name, { ...before, [member === 'path' ? 'path' : 'url']: value });
    }
  }
  return found;
}

/** Git's own rules for names and paths, and none that a program could take for an option. */
function isUsable(text: string): boolean {
  return (
    text.length > 0 &&
    text.length <= MAX_TEXT &&
    !/^[-/]|\p{Cc}|\\/u.test(text) &&
    text.split('/').every((part) => !/^(\.{0,2}|\.git)$/i.test(part))
  );
}

async function linkedCommit(
  repository: PrivateRepository,
  commit: string,
  path: string,
): Promise<string | null> {
  const entry = await repository.ask('ls-tree', '-z', commit, '--', path);
  return /^160000 commit ([0-9a-f]{40}|[0-9a-f]{64})\t/.exec(entry ?? '')?.[1] ?? null;
}

/** `git@host:path` */
const SCP_LIKE = /^(?:[\w.-]+@)?([\w.-]+):(?!\/\/)(.+)$/;

/** The http(s) address of a submodule at its repository's origin (also from ssh or a relative one); null for others. */
export function submoduleUrl(url: string, parentUrl: string): string | null {
  const parent = new URL(parentUrl);
  const [, scpHost, scpPath] = SCP_LIKE.exec(url) ?? [];
  let resolved: URL | null = null;
  if (/^\.\.?\//.test(url)) {
    resolved = URL.parse(url, `${parentUrl.replace(/\/+$/, '')}/`);
  } else if (scpHost !== undefined && scpPath !== undefined) {
    const path = `/${scpPath.replace(/^\/+/, '')}`;
    resolved = scpHost === parent.hostname ? URL.parse(path, parent.origin) : null;
  } else {
    const given = URL.parse(url);
    const isSsh = given?.protocol === 'ssh:' && given.hostname === parent.hostname;
    resolved = isSsh ? URL.parse(given.pathname, parent.origin) : given;
  }
  if (resolved?.origin !== parent.origin) {
    return null;
  }
  resolved.username = '';
  resolved.password = '';
  return resolved.href;
}
