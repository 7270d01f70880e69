import { mkdir, readdir, rename, rm, stat } from 'node:fs/promises';
import path from 'node:path';
import { z } from 'zod';
import type { GitCredential, GitPrepareAnswer, GitPrepareFailure } from '../../agent-protocol/git.js';
import type { AllowedPaths } from '../files/file-routes.js';
import { describeFailure } from '../log.js';
import { SecretMasker } from '../secret-masker.js';
import { type GitOutcome, gitSecrets, runGit, trustedGit } from './run-git.js';

interface RepositoryPlan {
  /** null: an empty repository. */
  url: string | null;
  /** Absolute. */
  folder: string;
  branch: string | null;
  newBranch: string | null;
  identity: { name: string; email: string } | null;
  credentials: readonly GitCredential[];
  timeoutMs: number;
  signal?: AbortSignal;
}

export interface GitPlace {
  environment: Record<string, string>;
  /** Put before git where an agent may have configured the repository. */
  wrapper: readonly string[];
}

/**
 * Makes a folder a repository: in a folder beside it, which then takes its name, so that it is there as a whole or not
 * at all. One that is a repository already is left as it is.
 */
export async function prepareRepository(plan: RepositoryPlan, place: GitPlace): Promise<GitPrepareAnswer> {
  try {
    if (await exists(path.join(plan.folder, '.git'))) {
      return await ready(plan.folder, place, '');
    }
    if (!(await isEmpty(plan.folder))) {
      return failed('directory_not_empty', `${plan.folder} has other content.`);
    }
    return await make(plan, place);
  } catch (error) {
    const { code, message } = describeFailure(error);
    return failed(code === 'ENOSPC' || code === 'EDQUOT' ? 'no_space' : 'failed', message);
  }
}

async function make(plan: RepositoryPlan, place: GitPlace): Promise<GitPrepareAnswer> {
  const parent = path.dirname(plan.folder);
  const temporary = path.join(parent, `.new-${path.basename(plan.folder)}`);
  await mkdir(parent, { recursive: true });
  // What an attempt left that was killed.
  await rm(temporary, { recursive: true, force: true });
  let output = '';
  for (const { args, cwd } of steps(plan, parent, temporary)) {
    const outcome = await git(plan, place, args, cwd);
    output = [output, outcome.output].filter((text) => text !== '').join('\n');
    if (!outcome.ok) {
      await rm(temporary, { recursive: true, force: true });
      return outcome.timedOut
        ? failed('timeout', `${output}\nIt took more than ${plan.timeoutMs / 1000} s.`.trim())
        : failed(prepareFailure(outcome.output), output);
    }
  }
  await rename(temporary, plan.folder);
  return await ready(plan.folder, place, output);
}

interface Step {
  args: string[];
  cwd: string;
}

function steps(
  { url, branch, newBranch, identity }: RepositoryPlan,
  parent: string,
  temporary: string,
): Step[] {
  const inside = (...args: string[]): Step => ({ args, cwd: temporary });
  const configure =
    identity === null
      ? []
      : [
          inside('config', '--local', 'user.name', identity.name),
          inside('config', '--local', 'user.email', identity.email),
        ];
  if (url === null) {
    const init = ['init', '--quiet', '--initial-branch', newBranch ?? branch ?? 'main', temporary];
    return [{ args: init, cwd: parent }, ...configure];
  }
  const wanted = branch === null ? [] : ['--branch', branch];
  const clone = ['clone', '--no-progress', ...wanted, '--', url, temporary];
  const leave = newBranch === null ? [] : [inside('checkout', '--quiet', '-b', newBranch)];
  return [{ args: clone, cwd: parent }, ...leave, ...configure];
}

async function git(plan: RepositoryPlan, place: GitPlace, args: string[], cwd: string): Promise<GitOutcome> {
  return await trustedGit({
    args,
    cwd,
    environment: place.environment,
    credentials: plan.credentials,
    timeoutMs: plan.timeoutMs,
    ...(plan.signal && { signal: plan.signal }),
  });
}

async function ready(
  folder: string,
  { environment, wrapper }: GitPlace,
  output: string,
): Promise<GitPrepareAnswer> {
  const ask = async (...args: string[]): Promise<string | null> =>
    (await runGit({ cwd: folder, environment, wrapper }, args))?.trim() || null;
  const [head, branch] = await Promise.all([
    ask('rev-parse', '--verify', '--quiet', 'HEAD^{commit}'),
    ask('symbolic-ref', '--quiet', '--short', 'HEAD'),
  ]);
  return { ok: true, failure: null, output, head, branch };
}

function failed(failure: GitPrepareFailure, output: string): GitPrepareAnswer {
  return { ok: false, failure, output, head: null, branch: null };
}

async function exists(file: string): Promise<boolean> {
  return (await stat(file).catch(() => null)) !== null;
}

async function isEmpty(folder: string): Promise<boolean> {
  try {
    return (await readdir(folder)).length === 0;
  } catch (error) {
    if (describeFailure(error).code === 'ENOENT') {
      return true;
    }
    throw error;
  }
}

/** A branch as git takes one, and no option: git-check-ref-format(1) says the rest. */
export const branchSchema = z
  .string()
  .min(1)
  .max(200)
  .regex(/^[^-\s~^:?*[\\\p{Cc}]([^\s~^:?*[\\\p{Cc}]*)$/u, 'is not a branch name');

/** git's helpers speak in lines. */
const oneLine = z.string().regex(/^[^\p{Cc}]*$/u, 'must not have control characters');

const httpUrl = z
  .url({ protocol: /^https?$/ })
  .refine((url) => new URL(url).username === '' && new URL(url).password === '', 'must not hold credentials');

const gitIdentitySchema = z.object({ name: oneLine.min(1).max(200), email: oneLine.min(1).max(320) });

/** `GitAccess`. */
export const gitAccessSchema = z.object({
  credentials: z.array(
    z.object({
      origin: httpUrl.transform((url) => new URL(url).origin),
      username: oneLine,
      password: oneLine.min(1),
    }),
  ),
  expose: z.boolean(),
  identity: gitIdentitySchema.nullable(),
});

/** `GitPrepareRequest`. */
export const gitPrepareSchema = z.object({
  url: httpUrl.nullable(),
  directory: z.string().min(1),
  branch: branchSchema.nullable(),
  new_branch: branchSchema.nullish(),
  username: oneLine.nullable(),
  password: oneLine.nullable(),
  identity: gitIdentitySchema.nullable(),
  timeout: z.number().positive().max(3600).default(600),
});

/** A `GitPrepareRequest` as it was understood. */
type PrepareRequest = z.infer<typeof gitPrepareSchema>;

interface RepositoryPreparationOptions extends GitPlace {
  workspace: string;
  paths: AllowedPaths;
}

/** Makes repositories that a client wants, each one once. */
export class RepositoryPreparation {
  readonly #options: RepositoryPreparationOptions;
  readonly #running = new Map<string, Promise<GitPrepareAnswer>>();
  readonly #stopped = new AbortController();

  constructor(options: RepositoryPreparationOptions) {
    this.#options = options;
  }

  get isRunning(): boolean {
    return this.#running.size > 0;
  }

  /**
   * Who asks for a folder that is being made gets the answer of that attempt.
   *
   * @throws HttpError when the folder is not inside the workspace
   */
  async prepare(request: PrepareRequest): Promise<GitPrepareAnswer> {
    const { paths, workspace } = this.#options;
    const folder = await paths.resolve(path.resolve(workspace, request.directory));
    const running = this.#running.get(folder);
    if (running !== undefined) {
      return await running;
    }
    const preparing = this.#prepare(folder, request).finally(() => this.#running.delete(folder));
    this.#running.set(folder, preparing);
    return await preparing;
  }

  /** Ends what is under way; nothing of it is left. */
  async stop(): Promise<void> {
    this.#stopped.abort();
    await Promise.allSettled(this.#running.values());
  }

  async #prepare(folder: string, request: PrepareRequest): Promise<GitPrepareAnswer> {
    const { url, username, password } = request;
    const credentials =
      url === null || password === null
        ? []
        : [{ origin: new URL(url).origin, username: username ?? '', password }];
    const answer = await prepareRepository(
      {
        url,
        folder,
        branch: request.branch,
        newBranch: request.new_branch ?? null,
        identity: request.identity,
        credentials,
        timeoutMs: request.timeout * 1000,
        signal: this.#stopped.signal,
      },
      this.#options,
    );
    return { ...answer, output: new SecretMasker(gitSecrets(credentials)).text(answer.output) };
  }
}

/** Branches, tags and remote branches by their full names, and the objects that they name. */
export type Refs = ReadonlyMap<string, string>;

/** Lines of `<object id> <full name>`, as `git for-each-ref` writes them; what is none is left out. */
export function parseRefs(text: string): Refs {
  const lines = text
    .split('\n')
    .map((line) => /^([0-9a-f]{40}|[0-9a-f]{64}) (refs\/[^\s\p{Cc}]+)$/u.exec(line));
  return new Map(lines.flatMap((match) => (match?.[1] && match[2] ? [[match[2], match[1]]] : [])));
}

/** What git, curl and the large servers write; first match counts. */
const SIGNS: readonly [RegExp, GitPrepareFailure][] = [
  [/no space left on device|disk quota exceeded/i, 'no_space'],
  [/remote branch .* not found|couldn't find remote ref|no such ref was fetched/i, 'branch_not_found'],
  [
    /authentication failed|could not read (username|password)|terminal prompts disabled|returned error: 40[13]|access denied|permission to .* denied/i,
    'authentication',
  ],
  [/repository .*not found|returned error: 404|project you were looking for/i, 'repository_not_found'],
  [
    /could not resolve (host|proxy)|failed to connect|couldn't connect|connection (refused|reset|timed out)|ssl|certificate/i,
    'unreachable',
  ],
];

/** Why git failed, by what it wrote (in English, as with `LC_ALL=C`). */
export function prepareFailure(output: string): GitPrepareFailure {
  return SIGNS.find(([sign]) => sign.test(output))?.[1] ?? 'failed';
}
