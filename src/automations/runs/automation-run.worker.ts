import { createHash } from 'node:crypto';
import { Injectable, type OnModuleInit } from '@nestjs/common';
import { errorMessage } from '@slipway/common/errors/error-message.js';
import { jsonText } from '@slipway/common/json-access.js';
import { DomainError, InvalidInputError } from '../../common/errors/domain-error.js';
import { toDto } from '../../common/validation/field.js';
import { DurableJobs } from '../../database/jobs/durable-jobs.js';
import { SuggestedTasksService } from '../../suggested-tasks/suggested-tasks.service.js';
import { StartConversationDto } from '../../v1/app-conversations/api/dto/start-conversation.dto.js';
import { ConversationStarter } from '../../v1/app-conversations/start/conversation-starter.js';
import { StartTaskQueries, type StartTaskRow } from '../../v1/app-conversations/start-task.queries.js';
import type { SuggestedTask } from '../../v1/app-conversations/suggested-task/suggested-task-prompt.js';
import { toRunRepository } from '../definitions/automation-repo.js';
import type { TaskChoice } from '../definitions/automation.entity.js';
import { AutomationRunRepository, DEAD_RUNS, RUNS } from './automation-run.repository.js';
import type { AutomationRun } from './automation-run.entity.js';

/** Read to find some that no earlier run has taken up. */
const TASKS_READ = 100;

/**
 * Begins runs. Each step can be repeated: ids of conversations are chosen and stored before the first is started, and
 * a start under an id that exists is found again.
 */
@Injectable()
export class AutomationRunWorker implements OnModuleInit {
  constructor(
    private readonly runs: AutomationRunRepository,
    private readonly jobs: DurableJobs,
    private readonly starter: ConversationStarter,
    private readonly startTasks: StartTaskQueries,
    private readonly suggestedTasks: SuggestedTasksService,
  ) {}

  onModuleInit(): void {
    this.jobs.handle(RUNS, ({ data }) => this.drive(runIdOf(data)));
    this.jobs.handle(DEAD_RUNS, ({ data, failure }) => this.giveUp(runIdOf(data), failure));
  }

  /** Does what is left to do. @throws what may pass, for another attempt */
  async drive(id: string): Promise<void> {
    const run = (await this.runs.begin(id)) ?? (await this.runs.findOneBy({ id, status: 'RUNNING' }));
    if (run === null || run.startTaskIds !== null) {
      return;
    }
    try {
      await this.start(await this.chosen(run));
    } catch (error) {
      if (mayPass(error)) {
        throw error;
      }
      await this.runs.finish(id, { status: 'FAILED', detail: sentenceOf(error) });
    }
  }

  private async giveUp(id: string, failure: string | null): Promise<void> {
    const cause = failure ?? 'The processes that worked on it ended before it was done.';
    const detail = `It could not be started in several attempts. ${cause}`;
    await this.runs.finish(id, { status: 'FAILED', detail });
  }

  private async chosen(run: AutomationRun): Promise<AutomationRun> {
    if (run.conversationIds.length > 0) {
      return run;
    }
    const { tasks: choice } = run.work;
    const open = choice && (await this.openTasks(run, choice));
    return this.runs.choose(run, (recent) => {
      const taken = new Set(recent.map(taskName));
      const tasks = open && open.filter((task) => !taken.has(taskName(task))).slice(0, choice?.limit);
      const conversationIds = (tasks ?? [null]).map((_task, index) => conversationIdOf(run.id, index));
      return { conversationIds, tasks };
    });
  }

  private async openTasks(run: AutomationRun, choice: TaskChoice): Promise<SuggestedTask[]> {
    const { tasks } = await this.suggestedTasks.find(run.userId, {
      limit: TASKS_READ,
      ...(choice.task_types && { taskTypes: choice.task_types }),
      ...(choice.providers && { providers: choice.providers }),
    });
    return tasks.map(({ provider, type, repository, number, title }) => ({
      git_provider: provider,
      task_type: type,
      repo: repository,
      issue_number: number,
      title,
    }));
  }

  private async start(run: AutomationRun): Promise<void> {
    if (run.status !== 'RUNNING') {
      return;
    }
    if (run.conversationIds.length === 0) {
      const detail = 'There was no suggested task to work on.';
      await this.runs.finish(run.id, { status: 'COMPLETED', detail, cost: 0, stops: false });
      return;
    }
    const { max_budget_per_run: budget } = run.work;
    const share = budget === null ? null : budget / run.conversationIds.length;
    const startTaskIds: string[] = [];
    for (const [index, id] of run.conversationIds.entries()) {
      const known = await lastStart(this.startTasks, run.userId, id);
      const body = toDto(StartConversationDto, startBody(run, id, run.tasks?.[index]));
      const start = known ?? (await this.starter.startFor(run.userId, body, `automation-run:${id}`, share));
      startTaskIds.push(start.id);
    }
    await this.runs.setStarted(run.id, startTaskIds);
  }
}

export async function lastStart(
  starts: StartTaskQueries,
  userId: string,
  conversationId: string,
): Promise<StartTaskRow | null> {
  const { items } = await starts.search(userId, { conversationId }, { order: 'CREATED_AT_DESC', limit: 1 });
  return items[0] ?? null;
}

function runIdOf(data: unknown): string {
  const runId = jsonText(data, 'runId');
  if (runId === null) {
    throw new TypeError('the job of a run has no id');
  }
  return runId;
}

function startBody(run: AutomationRun, conversationId: string, task?: SuggestedTask): object {
  const { prompt, model, repos, agent, result_schema, secret_names, follow } = run.work;
  const repository = repos[0] && toRunRepository(repos[0]);
  return {
    conversation_id: conversationId,
    trigger: 'automation',
    metadata: { automation_id: run.automationId, automation_run_id: run.id },
    llm_profile: model,
    agent,
    result_schema,
    secret_names,
    follow,
    ...(task
      ? { suggested_task: task }
      : {
          initial_message: { role: 'user', content: [{ type: 'text', text: prompt ?? '' }] },
          ...(repository && {
            selected_repository: repository.name,
            selected_branch: repository.branch,
            git_provider: repository.provider,
          }),
        }),
  };
}

/** The same in every attempt. */
function conversationIdOf(runId: string, index: number): string {
  const digest = createHash('sha256').update(`${runId} ${index}`).digest('hex');
  return digest.replace(/^(.{8})(.{4}).(.{3}).(.{3})(.{12}).*$/, '$1-$2-4$3-8$4-$5');
}

function taskName({ git_provider, repo, task_type, issue_number }: SuggestedTask): string {
  return `${git_provider} ${repo} ${task_type} ${issue_number}`;
}

const LASTING = ['unauthorized', 'forbidden', 'not_found', 'conflict', 'bad_request', 'too_large'];

/** Limits and outages pass; what the user has to change does not. */
function mayPass(error: unknown): boolean {
  const isLasting = error instanceof DomainError && LASTING.includes(error.kind);
  return !isLasting && !(error instanceof InvalidInputError);
}

function sentenceOf(error: unknown): string {
  return error instanceof InvalidInputError ? error.sentence : errorMessage(error);
}
