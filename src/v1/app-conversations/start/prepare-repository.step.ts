import { Injectable } from '@nestjs/common';
import type { GitIdentity } from '@slipway/agent-protocol/git.js';
import { DomainError } from '../../../common/errors/domain-error.js';
import type { ErrorKind } from '@slipway/api/errors/problem-error.js';
import { toHexId } from '@slipway/common/identifiers.js';
import {
  type CloneAccess,
  RepositoryAccessService,
} from '../../../git-providers/repository-access.service.js';
import { AgentServerCommands } from '@slipway/agent-client/agent-server.commands.js';
import type { AgentConfiguration } from '../agent-request/agent-inputs.reader.js';
import { gitIdentity } from '../agent-request/git-access.reader.js';
import type { AgentDialect } from '../agent-request/agent-dialect.js';
import type { RunningSandbox } from '../../sandboxes/sandbox.queries.js';
import type { KeyUse } from '@slipway/egress-rules/concealer.js';
import type { HolderReads } from '../outside-credentials/holder-reads.js';
import { OutsideCredentials } from '../outside-credentials/outside-credentials.js';
import { newBranchOf, startsInHead, type StartTask, visibleSecrets } from '../start-task.entity.js';
import { headBranch, type WorkPlace, workPlaceNote } from '../work-places/work-place.js';
import { changeRequestOf, forkPolicy, WorkPlaces } from '../work-places/work-places.service.js';
import { type CheckoutPlan, committerCommands, RepositoryCheckout } from './repository-checkout.js';
import { StartFailure, tailOf } from './start-failure.js';

/** The step is tried again after these. */
const TRANSIENT: readonly ErrorKind[] = ['rate_limited', 'bad_gateway', 'gateway_timeout', 'unavailable'];
const COMMAND_TIMEOUT_SECONDS = 60;
const NO_SUBMODULES =
  'Submodules are not fetched: the key that started this is for some repositories only, and the git token is in the sandbox (SANDBOX_CREDENTIALS).';

/** What a step in the sandbox works with. */
export interface StartContext {
  task: StartTask;
  sandbox: RunningSandbox;
  dialect: AgentDialect;
  /** The specification's folder; null when it is not configured any more. */
  specWorkingDir: string | null;
}

/** Whose keys it is given. @param agent of the settings */
export function keyUse(
  { task, dialect }: Pick<StartContext, 'task' | 'dialect'>,
  agent: string | null,
): KeyUse {
  const { agent: named, llm_profile: profile = null, llm_model: model } = task.request;
  return {
    agent: named ?? agent,
    profile,
    model,
    ...(dialect.choosesAddresses && { stock: true as const }),
  };
}

interface PreparedFolder {
  workingDir: string;
  notices: string[];
  /** Absent where nothing was prepared. */
  place?: WorkPlace | null;
}

type CloneSource = Pick<
  CheckoutPlan,
  | 'provider'
  | 'name'
  | 'url'
  | 'credential'
  | 'withheld'
  | 'branch'
  | 'newBranch'
  | 'upstream'
  | 'ref'
  | 'noPush'
>;

/** PREPARING_REPOSITORY: makes the agent's folder, with the repository in it. Repeatable. */
@Injectable()
export class PrepareRepositoryStep {
  constructor(
    private readonly commands: AgentServerCommands,
    private readonly access: RepositoryAccessService,
    private readonly checkout: RepositoryCheckout,
    private readonly places: WorkPlaces,
    private readonly outside: OutsideCredentials,
  ) {}

  /** Returns the agent's absolute folder, and notes about what the user may not expect. Throws StartFailure. */
  async run(
    context: StartContext,
    configuration: AgentConfiguration,
    signal: AbortSignal,
  ): Promise<PreparedFolder> {
    const { task, sandbox, dialect } = context;
    const { settings } = configuration;
    const identity = gitIdentity(settings);
    const {
      sandbox_id: givenSandbox,
      selected_repository: repository,
      git_provider: provider,
    } = task.request;
    const work = repository === null ? null : { repository, provider };
    const use = keyUse(context, settings.agent);
    const reads = this.outside.reads(sandbox, { profile: use.profile, configuration });
    const given = { isVisible: visibleSecrets([task.request]), work };
    const concealing = this.outside.prepare(sandbox, use, given, reads);
    const commands = givenSandbox === null && repository === null ? initCommands(identity) : [];
    const [base] = await Promise.all([
      // Of the parent conversation, which prepared it. Making it asks nothing of the network.
      task.workingDir ?? this.makeWorkingFolder(context, commands, signal),
      concealing,
    ]);
    if (task.workingDir !== null || repository === null) {
      return { workingDir: base, notices: [] };
    }
    const finding = this.places.find(task, forkPolicy(task.request, settings));
    // Awaited below, unless something else has failed by then.
    finding.catch(() => undefined);
    // A reused sandbox may have a folder of the repository's name.
    const parent = givenSandbox === null ? base : `${base}/${toHexId(task.appConversationId)}`;
    const folder = `${parent.replace(/\/+$/, '')}/${repository.split('/').at(-1) ?? repository}`;
    const { clone_submodules: submodules, fetch_lfs: lfs } = task.request;
    // A pull request may begin in a fork; all else is cloned meanwhile.
    const source = await this.sourceOf(
      task,
      repository,
      changeRequestOf(task.request) === null ? null : await finding,
    );
    const credential = await this.concealed(sandbox, source, reads);
    const isClear = credential !== null && credential.password === source.credential?.password;
    // The agent server would take the token to any repository of the host.
    const keepsSubmodules = isClear && task.request.own_repository === true;
    const parts = {
      submodules: submodules === true && !keepsSubmodules,
      lfs: lfs ?? false,
      depth: either(task.request.clone_depth, settings.clone_depth),
      filter: either(task.request.clone_filter, settings.clone_filter),
    };
    const [said, place] = await Promise.all([
      dialect.checkOut(this.checkout, sandbox, { ...source, credential, ...parts, folder, identity }, signal),
      finding,
    ]);
    const notices = [
      ...said,
      ...(submodules === true && keepsSubmodules ? [NO_SUBMODULES] : []),
      ...(place === null || place.push === 'head' ? [] : [workPlaceNote(repository, place)]),
    ];
    return { workingDir: folder, notices, place };
  }

  private async concealed(
    sandbox: RunningSandbox,
    { credential, url, upstream }: CloneSource,
    reads: HolderReads,
  ): Promise<CloneSource['credential']> {
    const concealer = await this.outside.concealer(sandbox, null, reads);
    const repositories = upstream === undefined ? [url] : [url, upstream.url];
    return credential && { ...credential, password: await concealer.text(credential.password, repositories) };
  }

  /** What is cloned, and what is checked out of it. */
  private async sourceOf(task: StartTask, repository: string, place: WorkPlace | null): Promise<CloneSource> {
    const { selected_branch: branch } = task.request;
    const own = newBranchOf(task.appConversationId);
    const base = await this.findAccess(task, repository);
    const head = place?.head ?? null;
    if (place === null || head === null) {
      return { ...base, name: repository, branch, newBranch: branch === null ? own : null };
    }
    const newBranch = startsInHead(place) ? null : own;
    if (head.repository === null) {
      const kept = head.ref === null ? {} : { ref: head.ref };
      const name = head.ref === null ? null : headBranch(head);
      const noPush = `the fork of pull request ${head.number} is deleted`;
      return { ...base, ...kept, name: repository, branch: name, newBranch, noPush };
    }
    const fork = await this.findAccess(task, head.repository);
    const upstream = { url: base.url, branch: head.targetBranch };
    return { ...fork, name: head.repository, branch: head.branch, newBranch, upstream };
  }

  private async findAccess(task: StartTask, repository: string): Promise<CloneAccess> {
    try {
      return await this.access.cloneAccess(task.userId, task.request.git_provider, repository);
    } catch (error) {
      if (error instanceof DomainError && !TRANSIENT.includes(error.kind)) {
        throw new StartFailure(
          'repository',
          `The repository ${repository} cannot be cloned. ${error.message}`,
          {
            cause: error,
          },
        );
      }
      throw error;
    }
  }

  private async makeWorkingFolder(
    { sandbox, dialect, specWorkingDir }: StartContext,
    commands: readonly string[],
    signal: AbortSignal,
  ): Promise<string> {
    const { exitCode, stdout, output } = await dialect.runInWorkspace(this.commands, sandbox, {
      workspace: specWorkingDir,
      command: ['set -e', ...commands, 'pwd -P'].join('\n'),
      timeoutSeconds: COMMAND_TIMEOUT_SECONDS,
      signal,
    });
    const folder = stdout.trim().split('\n').at(-1) ?? '';
    if (exitCode !== 0 || !folder.startsWith('/')) {
      throw new StartFailure(
        'sandbox',
        `The working folder could not be made in the sandbox.\n${tailOf(output)}`,
      );
    }
    return folder;
  }
}

/** What the start says, null included, or else the settings. */
function either<T>(asked: T | null | undefined, stored: T | null): T | null {
  return asked === undefined ? stored : asked;
}

/** Does nothing if the sandbox has no git, as the agent may have other work. */
function initCommands(identity: GitIdentity | null): string[] {
  return [
    'if command -v git >/dev/null; then',
    '  [ -e .git ] || git init --quiet >&2',
    ...committerCommands(identity),
    'fi',
  ];
}
