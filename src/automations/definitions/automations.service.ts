import { Injectable } from '@nestjs/common';
import { Clock } from '../../common/clock.js';
import { InvalidInputError } from '../../common/errors/domain-error.js';
import { toWishes } from '../../v1/app-conversations/followed/follow.dto.js';
import type { Owner } from '../current-owner.js';
import type { CreateAutomationDto, UpdateAutomationDto } from './automation.dto.js';
import { Automation, type AutomationWork } from './automation.entity.js';
import { AutomationRepository, type AutomationValues } from './automation.repository.js';
import { nextTime } from './schedule.js';
import { toTrigger } from './trigger.dto.js';

/** Methods throw InvalidInputError unless there is either a prompt or tasks. */
@Injectable()
export class AutomationsService {
  constructor(
    private readonly automations: AutomationRepository,
    private readonly clock: Clock,
  ) {}

  /** Throws as `AutomationRepository.add`. */
  async create(owner: Owner, given: CreateAutomationDto): Promise<{ row: Automation; isNew: boolean }> {
    return this.automations.add(owner, this.merged(new Automation(), given));
  }

  /** What is left out stays. @throws DomainError not_found for what is not the owner's */
  async change(owner: Owner, id: string, given: UpdateAutomationDto): Promise<Automation> {
    return this.automations.changeOf(owner, id, Object.keys(given), (before) => this.merged(before, given));
  }

  private merged(before: Automation, given: Partial<CreateAutomationDto>): AutomationValues {
    const { name, description, trigger: newTrigger, tags, enabled, state: newState, ...others } = given;
    const { max_runs_per_day, concurrency, ...work } = others;
    const { maxRunsPerDay, limit, whenBusy } = before.limits;
    const trigger = newTrigger ? toTrigger(newTrigger) : before.trigger;
    const olderState = enabled === undefined ? before.state : enabled ? 'ACTIVE' : 'INACTIVE';
    const state = newState ?? olderState;
    return {
      name: name ?? before.name,
      description: description === undefined ? before.description : description,
      state,
      trigger,
      eventSource: trigger.type === 'cron' ? null : trigger.source,
      nextRunAt: trigger.type === 'cron' && state === 'ACTIVE' ? nextTime(trigger, this.clock.now()) : null,
      work: mergedWork(before.work, work),
      limits: {
        maxRunsPerDay: max_runs_per_day ?? maxRunsPerDay,
        limit: concurrency?.limit ?? limit,
        whenBusy: concurrency?.when_busy ?? whenBusy,
      },
      tags: tags === undefined ? before.tags : toTags(tags ?? []),
    };
  }
}

/** Either a prompt or tasks: the one that is given takes the place of the other. */
function mergedWork(
  before: AutomationWork,
  { follow, repos, ...given }: Partial<CreateAutomationDto>,
): AutomationWork {
  const { prompt, tasks } = given;
  const chosen = {
    prompt: prompt ?? (tasks ? null : before.prompt),
    tasks: prompt === undefined && tasks === undefined ? before.tasks : (tasks ?? null),
  };
  if ((chosen.prompt === null) === (chosen.tasks === null)) {
    const msg = chosen.tasks
      ? 'Expected either a prompt or tasks, not both.'
      : 'Expected a prompt, or tasks in its place.';
    throw new InvalidInputError([{ loc: ['body', 'prompt'], msg, type: 'value_error' }]);
  }
  return {
    ...before,
    ...given,
    ...chosen,
    ...(repos !== undefined && { repos: repos ?? [] }),
    ...(follow !== undefined && { follow: follow && toWishes(follow) }),
  };
}

function toTags(given: readonly string[]): string[] {
  const tags = given.map((tag) => tag.trim().toLowerCase().replaceAll(/\s+/g, '-'));
  return [...new Set(tags.filter((tag) => tag !== ''))];
}
