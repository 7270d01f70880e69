import { Injectable } from '@nestjs/common';
import { Clock } from '../../common/clock.js';
import { DomainError, InvalidInputError } from '../../common/errors/domain-error.js';
import { toWishes } from '../../v1/app-conversations/followed/follow.dto.js';
import type { Owner } from '../current-owner.js';
import type { AutomationLimits } from '../runs/run-admission.js';
import type { CreateAutomationDto, UpdateAutomationDto } from './automation.dto.js';
import type { Automation, AutomationWork, TaskChoice } from './automation.entity.js';
import {
  AutomationRepository,
  type AutomationValues,
  type ListPlace,
  MAX_AUTOMATIONS,
} from './automation.repository.js';
import { nextTime } from './schedule.js';
import { isCron, toTrigger } from './trigger.js';

type Given = CreateAutomationDto | UpdateAutomationDto;

const NO_WORK: AutomationWork = {
  prompt: null,
  tasks: null,
  model: null,
  repos: [],
  timeout: null,
  keep_alive: null,
  result_schema: null,
  secret_names: null,
  agent: null,
  max_budget_per_run: null,
  follow: null,
  template: null,
};

const USUAL_LIMITS: AutomationLimits = { maxRunsPerDay: 100, limit: 1, whenBusy: 'queue' };

/** Methods throw DomainError not_found for what is not the owner's. */
@Injectable()
export class AutomationsService {
  constructor(
    private readonly automations: AutomationRepository,
    private readonly clock: Clock,
  ) {}

  async page(owner: Owner, tag: string | null, place: ListPlace): Promise<[Automation[], number]> {
    return this.automations.page(owner, tag, place);
  }

  async tags(owner: Owner): Promise<{ tag: string; count: number }[]> {
    return this.automations.tagCounts(owner);
  }

  async get(owner: Owner, id: string): Promise<Automation> {
    return found(await this.automations.findOf(owner, id));
  }

  /** @throws DomainError conflict for too many; InvalidInputError unless there is either a prompt or tasks */
  async create(
    owner: Owner,
    given: CreateAutomationDto,
  ): Promise<{ automation: Automation; isNew: boolean }> {
    const trigger = toTrigger(given.trigger);
    const before = { work: NO_WORK, limits: USUAL_LIMITS, state: 'ACTIVE', tags: [], trigger } as const;
    const description = given.description ?? null;
    const values = this.merged({ ...before, tags: [], name: given.name, description }, given);
    const added = await this.automations.add(owner, values);
    if (added === null) {
      throw new DomainError(
        'conflict',
        'conflict',
        `You have ${MAX_AUTOMATIONS} automations, the most that are kept; delete one first.`,
      );
    }
    return added;
  }

  /** What is left out stays. @throws InvalidInputError as `create` */
  async change(owner: Owner, id: string, given: UpdateAutomationDto): Promise<Automation> {
    const members = Object.entries(given).flatMap(([name, value]) => (value === undefined ? [] : [name]));
    return found(await this.automations.change(owner, id, members, (before) => this.merged(before, given)));
  }

  async remove(owner: Owner, id: string): Promise<void> {
    if (!(await this.automations.removeOf(owner, id))) {
      throw unknownAutomation();
    }
  }

  private merged(
    before: Pick<Automation, 'name' | 'description' | 'state' | 'trigger' | 'work' | 'limits' | 'tags'>,
    given: Given,
  ): AutomationValues {
    const trigger = given.trigger === undefined ? before.trigger : toTrigger(given.trigger);
    const enabled = given.enabled === undefined ? undefined : given.enabled ? 'ACTIVE' : 'INACTIVE';
    const state = given.state ?? enabled ?? before.state;
    return {
      name: given.name ?? before.name,
      description: given.description === undefined ? before.description : given.description,
      state,
      trigger,
      eventSource: isCron(trigger) ? null : trigger.source,
      nextRunAt: isCron(trigger) && state === 'ACTIVE' ? nextTime(trigger, this.clock.now()) : null,
      work: mergedWork(before.work, given),
      limits: {
        maxRunsPerDay: given.max_runs_per_day ?? before.limits.maxRunsPerDay,
        limit: given.concurrency?.limit ?? before.limits.limit,
        whenBusy: given.concurrency?.when_busy ?? before.limits.whenBusy,
      },
      tags: given.tags === undefined ? before.tags : toTags(given.tags ?? []),
    };
  }
}

function mergedWork(before: AutomationWork, given: Given): AutomationWork {
  const own = <Name extends keyof AutomationWork & keyof Given>(name: Name): AutomationWork[Name] =>
    (given[name] === undefined ? before[name] : given[name]) as AutomationWork[Name];
  const template = 'template' in given ? (given.template ?? null) : before.template;
  return {
    ...chosenWork(before, given),
    model: own('model'),
    repos:
      given.repos === undefined
        ? before.repos
        : (given.repos ?? []).map(({ url, ref = null, provider = null }) => ({ url, ref, provider })),
    timeout: own('timeout'),
    keep_alive: own('keep_alive'),
    result_schema: own('result_schema'),
    secret_names: own('secret_names'),
    agent: own('agent'),
    max_budget_per_run: own('max_budget_per_run'),
    follow: given.follow === undefined ? before.follow : given.follow && toWishes(given.follow),
    template: template && { id: template.id, version: template.version, config: template.config ?? null },
  };
}

/** Either a prompt or tasks: the one that is given takes the place of the other. */
function chosenWork(before: AutomationWork, given: Given): Pick<AutomationWork, 'prompt' | 'tasks'> {
  const { prompt, tasks } = given;
  if (prompt !== undefined && tasks) {
    throw invalidWork('Expected either a prompt or tasks, not both.');
  }
  if (prompt !== undefined) {
    return { prompt, tasks: null };
  }
  if (tasks) {
    const choice: TaskChoice = {
      task_types: tasks.task_types ?? null,
      providers: tasks.providers ?? null,
      limit: tasks.limit ?? 1,
    };
    return { prompt: null, tasks: choice };
  }
  if (before.prompt === null && (tasks === null || before.tasks === null)) {
    throw invalidWork('Expected a prompt, or tasks in its place.');
  }
  return { prompt: before.prompt, tasks: before.tasks };
}

function toTags(given: readonly string[]): string[] {
  const tags = given.map((tag) => tag.trim().toLowerCase().replaceAll(/\s+/g, '-'));
  return [...new Set(tags.filter((tag) => tag !== ''))];
}

function invalidWork(msg: string): InvalidInputError {
  return new InvalidInputError([{ loc: ['body', 'prompt'], msg, type: 'value_error' }]);
}

function found(automation: Automation | null): Automation {
  if (automation === null) {
    throw unknownAutomation();
  }
  return automation;
}

export function unknownAutomation(): DomainError {
  return new DomainError('not_found', 'not_found', 'There is no automation with this id.');
}
