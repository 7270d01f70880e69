import { isDeepStrictEqual } from 'node:util';
import { Injectable } from '@nestjs/common';
import { IsNull, Not } from 'typeorm';
import type { Owner } from '../../auth/owned.repository.js';
import { Clock } from '@slipway/common/clock.js';
import { found } from '../../common/errors/domain-error.js';
import { InvalidInputError, requireNone } from '@slipway/api/errors/problem-error.js';
import { nextTime, nextTimes, type Schedule } from '@slipway/common/schedule.js';
import { toDto } from '@slipway/api/validation/field.js';
import { InputValidationPipe } from '@slipway/api/validation/validation.pipe.js';
import { AutomationEventRepository } from '../events/automation-event.repository.js';
import { AutomationWebhookRepository } from '../events/automation-webhook.repository.js';
import { EventActors, problemWith } from '../events/event-actors.service.js';
import {
  CreateAutomationDto,
  type UpdateAutomationDto,
  type DraftReportDto,
  type ValidateDraftDto,
} from './automation.dto.js';
import {
  Automation,
  AutomationRepository,
  type AutomationValues,
  type AutomationWork,
} from './automation.repository.js';
import { type IncomingEvent, mismatch, toTrigger, type Trigger, TriggerDto } from './trigger.dto.js';

const NEXT_TIMES = 5;
/** A trigger that is tried alone is not refused for what it starts. */
const STRICTEST = { secret_names: [], git: 'none' };
const ENDPOINT = '/v1/preset/prompt';
const ONLY = `Only drafts for ${ENDPOINT} are offered here.`;
const NOT_OFFERED = { field: null, code: 'not_offered', message: ONLY };
const DRAFTS = new InputValidationPipe(CreateAutomationDto);

/** `create` and `change` throw InvalidInputError unless there is either a prompt or tasks. */
@Injectable()
export class AutomationsService {
  constructor(
    private readonly automations: AutomationRepository,
    private readonly events: AutomationEventRepository,
    private readonly webhooks: AutomationWebhookRepository,
    private readonly actors: EventActors,
    private readonly clock: Clock,
  ) {}

  /** Throws as `AutomationRepository.add`. */
  async create(owner: Owner, given: CreateAutomationDto): Promise<{ row: Automation; isNew: boolean }> {
    return this.automations.add(owner, this.merged(new Automation(), given));
  }

  /** What is left out stays. @throws DomainError not_found for what is not the owner's */
  async change(owner: Owner, id: string, given: UpdateAutomationDto): Promise<Automation> {
    return this.automations.changeOf(owner, id, given, (before) => this.merged(before, given));
  }

  /** What is wrong with an automation that is not there yet, and when it would start. */
  async validate(owner: Owner, given: ValidateDraftDto): Promise<DraftReportDto> {
    const { endpoint = ENDPOINT, trigger: alone = null } = given;
    const draft = given.draft ?? { ...STRICTEST, name: 'Draft', prompt: 'Draft', trigger: alone };
    const problems = await DRAFTS.transform(draft, { type: 'body' })
      .then((body) => this.merged(new Automation(), body as CreateAutomationDto))
      .then(() => [], problemsOf);
    const errors = endpoint === ENDPOINT ? problems : [NOT_OFFERED];
    // A good trigger is looked at, whatever else is wrong.
    const isGood = problems.every(({ field }) => field?.split('.')[0] !== 'trigger');
    const trigger = isGood ? toTrigger(toDto(TriggerDto, Object(draft['trigger']))) : null;
    const times = trigger?.type === 'cron' ? nextTimes(trigger, this.clock.now(), NEXT_TIMES) : [];
    const event = trigger?.type === 'event' ? await this.eventFor(owner, given, trigger.source) : null;
    const reason =
      trigger && event && (mismatch(trigger, event) ?? (await this.refusal(owner, trigger, event)));
    const matched = event && reason === null;
    return {
      valid: errors.length === 0,
      errors,
      next_times: times.map((time) => time.toISOString()),
      matched,
      reasons: reason === null ? [] : [reason],
      sampleEventMatched: matched,
    };
  }

  /** Why the one who has caused an event does not start what has the trigger. */
  private async refusal(
    owner: Owner,
    trigger: Trigger,
    { source, payload }: IncomingEvent,
  ): Promise<string | null> {
    const webhook = await this.webhooks.findOneBy({ orgId: owner.orgId, source });
    const rules = { source, writers_expr: webhook?.writers_expr ?? null };
    return problemWith(await this.actors.find(owner.userId, rules, payload), trigger);
  }

  /** The one that is given, else the last one of the source. @throws DomainError not_found for an unknown id */
  private async eventFor(
    owner: Owner,
    { event, event_id: id, sampleEvent }: ValidateDraftDto,
    source: string,
  ): Promise<IncomingEvent | null> {
    if (id !== undefined) {
      const past = await this.events.findOneBy({ ...owner, id, payload: Not(IsNull()) });
      const { source: from, eventKey, payload } = found(past, 'event');
      return { source: from, key: eventKey, payload };
    }
    if (event || sampleEvent) {
      return { source, key: event?.key ?? null, payload: event?.payload ?? sampleEvent };
    }
    const last = await this.events.findOne({
      where: { ...owner, source, payload: Not(IsNull()) },
      order: { createdAt: 'DESC' },
    });
    return last && { source, key: last.eventKey, payload: last.payload };
  }

  private merged(before: Automation, given: Partial<CreateAutomationDto>): AutomationValues {
    const { name = before.name, description = before.description, tags = before.tags, ...others } = given;
    const { enabled = before.state === 'ACTIVE', state = enabled ? 'ACTIVE' : 'INACTIVE', ...rest } = others;
    const { trigger: newTrigger, ...work } = rest;
    const trigger = newTrigger ? toTrigger(newTrigger) : before.trigger;
    // A run that is due just now is still made.
    const isAsBefore = state === before.state && isDeepStrictEqual(trigger, before.trigger);
    const next = (schedule: Schedule): Date | null =>
      (isAsBefore && before.nextRunAt) || nextTime(schedule, this.clock.now());
    return {
      name,
      description,
      tags: toTags(tags ?? []),
      state,
      trigger,
      nextRunAt: trigger.type === 'cron' && state === 'ACTIVE' ? next(trigger) : null,
      work: restricted(mergedWork(before.work, work), trigger),
    };
  }
}

/** An automation that strangers can start gives its agent only what its owner has chosen for that. */
function restricted(work: AutomationWork, trigger: Trigger): AutomationWork {
  const isForAnyone = trigger.type === 'event' && trigger.from === 'anyone';
  const problems = {
    secret_names: work.secret_names === null && 'Expected the names of secrets, or [], where from is anyone.',
    git: work.git === 'write' && 'Expected none or read, where from is anyone.',
  };
  const wrong = Object.entries(problems).flatMap(([member, msg]) =>
    isForAnyone && msg !== false ? [{ loc: ['body', member], msg, type: 'value_error' }] : [],
  );
  requireNone(wrong);
  return work;
}

/** Merges changes into the work: a given prompt replaces the tasks, and given tasks replace the prompt. */
function mergedWork(
  before: AutomationWork,
  { repos = before.repos, ...given }: Partial<CreateAutomationDto>,
): AutomationWork {
  const { prompt = given.tasks ? null : before.prompt, tasks = given.prompt ? null : before.tasks } = given;
  if ((prompt === null) === (tasks === null)) {
    const msg = tasks
      ? 'Expected either a prompt or tasks, not both.'
      : 'Expected a prompt, or tasks in its place.';
    throw new InvalidInputError({ loc: ['body', 'prompt'], msg, type: 'value_error' });
  }
  const concurrency = Object.assign({}, before.concurrency, given.concurrency);
  return { ...before, ...given, prompt, tasks, repos: repos ?? [], concurrency };
}

function toTags(given: readonly string[]): string[] {
  const tags = given.map((tag) => tag.trim().toLowerCase().replaceAll(/\s+/g, '-'));
  return [...new Set(tags.filter((tag) => tag !== ''))];
}

/** @throws what is no such error */
function problemsOf(error: unknown): DraftReportDto['errors'] {
  if (!(error instanceof InvalidInputError)) {
    throw error;
  }
  return error.problems.map(({ loc, type: code, msg: message }) => {
    return { field: loc.slice(1).join('.') || null, code, message };
  });
}
