import { Injectable } from '@nestjs/common';
import { Clock } from '../../common/clock.js';
import { InvalidInputError } from '../../common/errors/domain-error.js';
import { toWishes } from '../../v1/app-conversations/followed/follow.dto.js';
import type { Owner } from '../current-owner.js';
import type { AutomationLimits } from '../runs/run-admission.js';
import { type CreateAutomationDto, givenMembers, type UpdateAutomationDto } from './automation.dto.js';
import type { Automation, AutomationWork } from './automation.entity.js';
import { AutomationRepository, type AutomationValues } from './automation.repository.js';
import { nextTime } from './schedule.js';
import { toTrigger } from './trigger.js';

type Given = Partial<CreateAutomationDto> & UpdateAutomationDto;

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

/** Methods throw InvalidInputError unless there is either a prompt or tasks. */
@Injectable()
export class AutomationsService {
  constructor(
    private readonly automations: AutomationRepository,
    private readonly clock: Clock,
  ) {}

  /** Throws as `AutomationRepository.add`. */
  async create(owner: Owner, given: CreateAutomationDto): Promise<{ row: Automation; isNew: boolean }> {
    const { name, trigger } = given;
    const before = { name, description: null, state: 'ACTIVE', work: NO_WORK, limits: USUAL_LIMITS } as const;
    return this.automations.add(
      owner,
      this.merged({ ...before, trigger: toTrigger(trigger), tags: [] }, given),
    );
  }

  /** What is left out stays. @throws DomainError not_found for what is not the owner's */
  async change(owner: Owner, id: string, given: UpdateAutomationDto): Promise<Automation> {
    const members = Object.keys(givenMembers(given));
    return this.automations.changeOf(owner, id, members, (before) => this.merged(before, given));
  }

  private merged(
    before: Omit<AutomationValues, 'eventSource' | 'nextRunAt'>,
    given: Given,
  ): AutomationValues {
    const trigger = given.trigger === undefined ? before.trigger : toTrigger(given.trigger);
    const enabled = given.enabled === undefined ? before.state : given.enabled ? 'ACTIVE' : 'INACTIVE';
    const state = given.state ?? enabled;
    return {
      name: given.name ?? before.name,
      description: given.description === undefined ? before.description : given.description,
      state,
      trigger,
      eventSource: trigger.type === 'cron' ? null : trigger.source,
      nextRunAt: trigger.type === 'cron' && state === 'ACTIVE' ? nextTime(trigger, this.clock.now()) : null,
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
  const { model, timeout, keep_alive, result_schema, secret_names, agent, max_budget_per_run } = given;
  const { repos, template } = given;
  return {
    ...before,
    ...givenMembers({ model, timeout, keep_alive, result_schema, secret_names, agent, max_budget_per_run }),
    ...(repos !== undefined && {
      repos: (repos ?? []).map(({ url, ref = null, provider = null }) => ({ url, ref, provider })),
    }),
    ...(template && { template: { config: null, ...givenMembers(template) } }),
    ...chosenWork(before, given),
    follow: given.follow === undefined ? before.follow : given.follow && toWishes(given.follow),
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
    return { prompt: null, tasks: { task_types: null, providers: null, limit: 1, ...givenMembers(tasks) } };
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
