import { Injectable, Logger } from '@nestjs/common';
import { DomainError } from '../../common/errors/domain-error.js';
import { InvalidInputError } from '@slipway/api/errors/problem-error.js';
import { toDto } from '@slipway/api/validation/field.js';
import {
  PUBLIC_GIT_SERVER_NAMES,
  PUBLIC_GIT_SERVERS,
  type PublicGitServerName,
} from '@slipway/git-providers/public-git-servers.js';
import type { LeaseEnd } from '@slipway/database/leased-rows.js';
import { LeasedWork, type LeasedWorkOptions } from '@slipway/database/leased-worker.js';
import { ServiceLeasedWorker } from '../../database/leased-work.module.js';
import { toSuggestedTaskDto } from '../../suggested-tasks/suggested-tasks.dto.js';
import { SuggestedTasksService } from '../../suggested-tasks/suggested-tasks.service.js';
import { StartConversationDto } from '../../v1/app-conversations/api/dto/start-conversation.dto.js';
import { ConversationStarter } from '../../v1/app-conversations/start/conversation-starter.js';
import { StartTaskQueries } from '../../v1/app-conversations/start-task.queries.js';
import type { SuggestedTaskDto } from '../../suggested-tasks/suggested-tasks.dto.js';
import { type RepoDto, repositoryName } from '../definitions/automation.dto.js';
import { type AutomationRun, causeOf } from './automation-run.entity.js';
import { AutomationRunRepository, type LeasedRun } from './automation-run.repository.js';

/** Read to find some that no earlier run has taken up. */
const TASKS_READ = 100;
const LASTING = [
  'unauthorized',
  'forbidden',
  'not_found',
  'conflict',
  'bad_request',
  'too_large',
  'storage_full',
];

/** The attempts of a run last about two hours, since what its owner may start has a limit, too. */
const OPTIONS: LeasedWorkOptions = {
  queue: 'automation-run',
  places: 20,
  leaseMs: 15_000,
  pollMs: 2_000,
  mostAttempts: 11,
  pauseMs: 6_000,
};
/** The end of another run makes one due that waits for it; this is for an end that the release before this one stores. */
const LOOK_AGAIN_MS = 300_000;

/**
 * Begins runs. Each step can be repeated: ids of conversations are chosen and stored before the first is started, and
 * a start under an id that exists is found again.
 */
@Injectable()
export class AutomationRunWorker extends ServiceLeasedWorker<LeasedRun> {
  constructor(
    private readonly runs: AutomationRunRepository,
    shared: LeasedWork,
    private readonly starter: ConversationStarter,
    private readonly startTasks: StartTaskQueries,
    private readonly suggestedTasks: SuggestedTasksService,
  ) {
    super(OPTIONS, shared, runs.leases, new Logger('Automations'));
    shared.count(OPTIONS.queue, () => runs.leases.backlog());
  }

  protected async work({ id }: LeasedRun): Promise<LeaseEnd> {
    await this.drive(id);
    return { dueAt: new Date(this.shared.clock.now() + LOOK_AGAIN_MS), counts: false };
  }

  protected override async giveUp({ id }: LeasedRun, failure: string | null): Promise<void> {
    const cause = failure ?? 'The processes that worked on it ended before it was done.';
    const detail = `It could not be started in several attempts. ${cause}`;
    await this.runs.finish(id, { status: 'FAILED', detail });
  }

  protected override traceparentOf({ traceparent }: LeasedRun): string | null {
    return traceparent;
  }

  /** Does what is left to do. @throws what may pass, for another attempt */
  async drive(id: string): Promise<void> {
    const run = await this.runs.begin(id);
    if (run === null) {
      return;
    }
    try {
      const isChosen = run.conversationIds.length > 0;
      await this.startChosen(isChosen ? run : await this.runs.choose(run, await this.openTasks(run)));
    } catch (error) {
      const detail = lastingProblem(error);
      if (detail === null) {
        throw error;
      }
      await this.runs.finish(id, { status: 'FAILED', detail });
    }
  }

  private async openTasks({ userId, work }: AutomationRun): Promise<SuggestedTaskDto[] | null> {
    if (work.tasks === null) {
      return null;
    }
    const { task_types, providers } = work.tasks;
    const chosen = { taskTypes: task_types ?? undefined, providers: providers ?? undefined };
    const { tasks } = await this.suggestedTasks.find(userId, { limit: TASKS_READ, ...chosen });
    return tasks.map(toSuggestedTaskDto);
  }

  private async startChosen(run: AutomationRun): Promise<void> {
    if (run.status !== 'RUNNING') {
      return;
    }
    if (run.conversationIds.length === 0) {
      const detail = 'There was no suggested task to work on.';
      await this.runs.finish(run.id, { status: 'COMPLETED', detail, cost: 0 });
      return;
    }
    const { max_budget_per_run: budget } = run.work;
    const change = changeRequestOf(run);
    const terms = {
      ...(budget !== null && { max_budget: budget / run.conversationIds.length }),
      ...(change !== null && { change_request: change }),
      cause: causeOf(run),
    };
    const startTaskIds: string[] = [];
    for (const [index, id] of run.conversationIds.entries()) {
      const body = toDto(StartConversationDto, startBody(run, id, run.tasks?.[index]));
      const start =
        (await this.startTasks.newest(run.userId, id)) ??
        (await this.starter.startFor(
          { id: run.userId, repositories: null },
          body,
          `automation-run:${id}`,
          terms,
        ));
      startTaskIds.push(start.id);
    }
    await this.runs.setStarted(run.id, startTaskIds);
  }
}

/** Number of the pull request that the event is about, where that is one of the repository that the run works in. */
function changeRequestOf({ event, work, tasks }: AutomationRun): number | null {
  const [repo] = work.repos;
  const change = event?.change_request;
  return repo &&
    change &&
    tasks === null &&
    (repo.provider ?? hostOf(repo) ?? change.source) === change.source &&
    repositoryName(repo.url).toLowerCase() === change.repository.toLowerCase()
    ? change.number
    : null;
}

function hostOf({ url }: RepoDto): PublicGitServerName | undefined {
  const host = URL.parse(url)?.hostname;
  return PUBLIC_GIT_SERVER_NAMES.find((each) => PUBLIC_GIT_SERVERS[each].host === host);
}

function startBody(run: AutomationRun, conversationId: string, task?: SuggestedTaskDto): object {
  const { prompt, model, repos, agent, result_schema, secret_names, git, fork, follow } = run.work;
  const [repo] = repos;
  return {
    conversation_id: conversationId,
    title: run.event?.title ?? null,
    trigger: 'automation',
    metadata: { automation_id: run.automationId, automation_run_id: run.id },
    llm_profile: model,
    agent,
    result_schema,
    secret_names,
    git,
    fork,
    follow,
    ...(task
      ? { suggested_task: task }
      : {
          initial_message: { role: 'user', content: [{ type: 'text', text: prompt ?? '' }] },
          ...(repo && {
            selected_repository: repositoryName(repo.url),
            selected_branch: repo.ref,
            // Null: the first provider with a token.
            git_provider: repo.provider ?? hostOf(repo) ?? null,
          }),
        }),
  };
}

/** What the user has to change; null for limits and outages, which pass. */
function lastingProblem(error: unknown): string | null {
  if (error instanceof InvalidInputError) {
    return error.sentence;
  }
  return error instanceof DomainError && LASTING.includes(error.kind) ? error.message : null;
}
