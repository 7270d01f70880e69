import { randomUUID } from 'node:crypto';
import { Injectable } from '@nestjs/common';
import { DEFAULT_IDENTITY } from '@slipway/agent-protocol/default-identity.js';
import {
  type GitIdentity,
  type GitPrepareFailure,
  type GitPrepareResponse,
} from '@slipway/agent-protocol/git.js';
import type { CloneFilter } from '@slipway/common/clone-part.js';
import { withoutSecret } from '@slipway/common/secret-mask.js';
import type { GitCredential, ProviderType } from '@slipway/git-providers/git-provider.js';
import { AgentServerCommands } from '@slipway/agent-client/agent-server.commands.js';
import { AgentServerClient } from '@slipway/agent-client/agent-server.client.js';
import { AgentServerHttp } from '@slipway/agent-client/agent-server.http.js';
import type { AgentServerTarget } from '@slipway/agent-client/agent-server.connections.js';
import { StartFailure, tailOf } from './start-failure.js';

const CLONE_TIMEOUT_SECONDS = 600;
/** The credential helper would answer every server that a submodule names. */
const NO_PARTS =
  'Submodules and files of Git LFS are not fetched: only agent servers of this service can do that safely.';

export interface CheckoutPlan {
  provider: ProviderType;
  /** The name that the user gave. */
  name: string;
  /** http(s), without credentials. */
  url: string;
  /** Null: anonymously. */
  credential: GitCredential | null;
  /** Why that is none, and what to do. */
  withheld?: string;
  folder: string;
  /** Null: the default branch. */
  branch: string | null;
  /** Made from `branch` for the conversation's work. */
  newBranch: string | null;
  /** What it is a fork of, and the branch there that its changes go to. */
  upstream?: { url: string; branch: string };
  /** What the host keeps of a pull request: fetched as `branch`. */
  ref?: string;
  /** Why nothing is pushed, for git to say. */
  noPush?: string;
  submodules: boolean;
  lfs: boolean;
  /** Commits of each branch; null: all. */
  depth: number | null;
  /** Null: everything is fetched. */
  filter: CloneFilter | null;
  /** Null: no committer is set. */
  identity: GitIdentity | null;
}

/**
 * Checks repositories out inside sandboxes. Credentials reach no address, argument, configuration or log. Both ways do
 * nothing where the repository exists, return notes for the user, and throw StartFailure.
 */
@Injectable()
export class RepositoryCheckout {
  constructor(
    private readonly agentServers: AgentServerClient,
    private readonly commands: AgentServerCommands,
    private readonly http: AgentServerHttp,
  ) {}

  /** Asks our own agent server. */
  async byRoute(target: AgentServerTarget, plan: CheckoutPlan, signal: AbortSignal): Promise<string[]> {
    const result = await this.agentServers.prepareRepository(
      target,
      {
        url: plan.url,
        directory: plan.folder,
        branch: plan.branch,
        new_branch: plan.newBranch,
        ...(plan.upstream && { upstream: plan.upstream }),
        ...(plan.ref !== undefined && { ref: plan.ref }),
        ...(plan.noPush !== undefined && { no_push: plan.noPush }),
        username: plan.credential?.username ?? null,
        password: plan.credential?.password ?? null,
        bearer: plan.credential?.bearer,
        identity: plan.identity,
        submodules: plan.submodules,
        lfs: plan.lfs,
        depth: plan.depth,
        filter: plan.filter,
        timeout: CLONE_TIMEOUT_SECONDS,
      },
      signal,
    );
    return noticesOf(plan, result);
  }

  /** Clones by shell command, on agent servers without a route for checkouts. */
  async byCommand(target: AgentServerTarget, plan: CheckoutPlan, signal: AbortSignal): Promise<string[]> {
    const secretFile = plan.credential ? `/tmp/slipway-${randomUUID()}` : null;
    if (plan.credential && secretFile !== null) {
      // The agent server logs commands; this file is gone before git starts.
      const { username, password } = plan.credential;
      await this.http.upload(target, secretFile, `${username}\n${password}\n`, signal);
    }
    const { exitCode, output } = await this.commands.run(target, {
      command: cloneScript(plan, secretFile),
      cwd: null,
      timeoutSeconds: CLONE_TIMEOUT_SECONDS,
      signal,
    });
    const ok = exitCode === 0;
    const notices = [...output.matchAll(NOTICE_LINE)].map(([, notice = '']) => notice);
    if (plan.submodules || plan.lfs) {
      notices.push(NO_PARTS);
    }
    return noticesOf(plan, { ok, failure: ok ? null : failureOfOutput(output), output, notices });
  }
}

function noticesOf(
  plan: CheckoutPlan,
  { ok, failure, output, notices }: Pick<GitPrepareResponse, 'ok' | 'failure' | 'output' | 'notices'>,
): string[] {
  if (!ok) {
    throw new StartFailure('repository', checkoutFailure(plan, failure ?? 'failed', output));
  }
  return notices;
}

type FailedPlan = Pick<CheckoutPlan, 'provider' | 'name' | 'branch' | 'credential' | 'withheld'>;

/** Tells the user what happened and what to do, with the end of git's output. */
export function checkoutFailure(plan: FailedPlan, failure: GitPrepareFailure, output: string): string {
  const shown = withoutSecret(output, plan.credential?.password);
  return [sentence(plan, failure), tailOf(shown)].filter((part) => part !== '').join('\n');
}

function sentence(
  { provider, name, branch, credential, withheld }: FailedPlan,
  failure: GitPrepareFailure,
): string {
  const repository = `The repository ${name}`;
  if (withheld !== undefined && (failure === 'authentication' || failure === 'repository_not_found')) {
    return `${repository} could not be cloned without a token: ${withheld}.`;
  }
  switch (failure) {
    case 'authentication':
      return credential === null
        ? `${repository} wants credentials: store a token for ${provider} in the settings.`
        : `${repository} could not be cloned, the server refused the ${provider} token (401 or 403): store a new one that may read it.`;
    case 'repository_not_found':
      return credential === null
        ? `${repository} was not found by its name without a token: check the name, or store a token for ${provider}.`
        : `${repository} was not found: check the name, and whether the ${provider} token may see it.`;
    case 'branch_not_found':
      return `The branch ${branch ?? ''} does not exist in ${name}: check selected_branch.`;
    case 'unreachable':
      return `${repository} could not be cloned, its server cannot be reached from the sandbox.`;
    case 'directory_not_empty':
      return `${repository} could not be cloned, its folder in the sandbox has other content: start without sandbox_id.`;
    case 'no_space':
      return `${repository} could not be cloned, there is no space left in the sandbox.`;
    case 'timeout':
      return `${repository} could not be cloned in time.`;
    case 'failed':
      return `${repository} could not be cloned.`;
  }
}

/** English messages of git, curl and the large git servers; the first match counts. */
const FAILURE_PATTERNS: readonly [RegExp, GitPrepareFailure][] = [
  [/no space left on device|disk quota exceeded/i, 'no_space'],
  [/remote branch .* not found|couldn't find remote ref/i, 'branch_not_found'],
  [
    /authentication failed|could not read (username|password)|terminal prompts disabled|returned error: 40[13]|access denied/i,
    'authentication',
  ],
  [/repository .*not found|returned error: 404/i, 'repository_not_found'],
  [
    /could not resolve|failed to connect|couldn't connect|connection (refused|reset|timed out)/i,
    'unreachable',
  ],
];

export function failureOfOutput(output: string): GitPrepareFailure {
  return FAILURE_PATTERNS.find(([pattern]) => pattern.test(output))?.[1] ?? 'failed';
}

/** Makes a text one word of a POSIX shell. */
export function shellQuote(text: string): string {
  return `'${text.replaceAll("'", String.raw`'\''`)}'`;
}

/**
 * Sets the committer of a new repository. Without an identity, an existing setting wins: our own agent servers' default in
 * their home, or a setup script's.
 */
export function committerCommands(identity: GitIdentity | null): string[] {
  return Object.entries(identity ?? DEFAULT_IDENTITY).map(([name, value]) => {
    const unless = identity === null ? `git config user.${name} >/dev/null || ` : '';
    return `${unless}git config user.${name} ${shellQuote(value)}`;
  });
}

/** Reads user name and password from the environment of this one command. */
const CREDENTIAL_HELPER = `!f() { [ "$1" = get ] && printf 'username=%s\\npassword=%s\\n' "$SLIPWAY_GIT_USERNAME" "$SLIPWAY_GIT_PASSWORD"; }; f`;

function bearerHeader(address: string): string {
  const key = shellQuote(`http.${address}.extraHeader`);
  return `export GIT_CONFIG_COUNT=1 GIT_CONFIG_KEY_0=${key} GIT_CONFIG_VALUE_0="Authorization: Bearer $SLIPWAY_GIT_PASSWORD"`;
}

/** Lines of our own commands for the user, among the output of git. */
const NOTICE_LINE = /^slipway: (.+)$/gm;

/** When the remote has no default branch, git checks out nothing. */
const TAKE_ANY_BRANCH = `if ! git rev-parse --verify --quiet HEAD >/dev/null; then
  for name in main master "$(git for-each-ref --sort=-committerdate --count=1 --format='%(refname:lstrip=3)' refs/remotes/origin)" ''; do
    if [ -z "$name" ]; then echo 'slipway: The repository has no branch yet: its folder is empty.'; break; fi
    if git rev-parse --verify --quiet "refs/remotes/origin/$name" >/dev/null; then
      git checkout --quiet -B "$name" "refs/remotes/origin/$name"
      echo "slipway: The default branch of the repository does not exist: $name is checked out."
      break
    fi
  done
fi`;

/**
 * Clones beside the folder and then renames, so that the clone is complete or absent, and repeatable. `secretFile` has
 * user name and password on a line each, and is removed first; null: clones anonymously.
 */
function cloneScript(
  { url, folder, branch, newBranch, depth, filter, identity, credential, ...fork }: CheckoutPlan,
  secretFile: string | null,
): string {
  const target = shellQuote(folder);
  const helper = secretFile === null ? '' : ` -c credential.helper=${shellQuote(CREDENTIAL_HELPER)}`;
  const { upstream, ref, noPush } = fork;
  const git = `git -c credential.helper=${helper}`;
  const wanted = branch === null || ref !== undefined ? '' : ` --branch ${shellQuote(branch)}`;
  const cut = depth === null ? '' : ` --depth=${depth}`;
  const part = [
    ...(depth === null ? [] : [`${cut} --no-single-branch`]),
    ...(filter === null ? [] : [` --filter=${filter}`]),
  ].join('');
  return [
    'set -e',
    ...(secretFile === null
      ? []
      : [
          `{ IFS= read -r SLIPWAY_GIT_USERNAME; IFS= read -r SLIPWAY_GIT_PASSWORD; } <${shellQuote(secretFile)}`,
          `rm -f ${shellQuote(secretFile)}`,
          'export SLIPWAY_GIT_USERNAME SLIPWAY_GIT_PASSWORD',
          ...(credential?.bearer === undefined ? [] : [bearerHeader(credential.bearer)]),
        ]),
    'export GIT_TERMINAL_PROMPT=0 LC_ALL=C',
    `[ -e ${target}/.git ] && exit 0`,
    `new=${target}.slipway-new`,
    'rm -rf "$new"',
    `${git} clone --no-progress${part}${wanted} -- ${shellQuote(url)} "$new"`,
    `cd "$new"`,
    ...(branch === null ? [TAKE_ANY_BRANCH] : []),
    ...(ref === undefined || branch === null
      ? []
      : [
          `${git} fetch --quiet${cut} origin ${shellQuote(`${ref}:refs/heads/${branch}`)}`,
          `git checkout --quiet ${shellQuote(branch)} --`,
        ]),
    ...(upstream
      ? [
          `git remote add upstream ${shellQuote(upstream.url)}`,
          `${git} fetch --quiet${cut} upstream ${shellQuote(upstream.branch)} || true`,
        ]
      : []),
    ...(noPush === undefined ? [] : [`git config remote.origin.pushurl ${shellQuote(noPush)}`]),
    ...(newBranch === null ? [] : [`git checkout --quiet -b ${shellQuote(newBranch)}`]),
    ...committerCommands(identity),
    `cd /`,
    `rmdir ${target} 2>/dev/null || true`,
    `[ ! -e ${target} ] || { echo "the folder has other content" >&2; exit 1; }`,
    `mv "$new" ${target}`,
    // The folder may belong to another user than the one who works in it.
    `git config --global --get-all safe.directory | grep -Fqx -- ${target} || git config --global --add safe.directory ${target} || true`,
  ].join('\n');
}
