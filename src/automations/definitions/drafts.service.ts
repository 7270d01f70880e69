import { Injectable } from '@nestjs/common';
import { Clock } from '../../common/clock.js';
import { type InputProblem, InvalidInputError } from '../../common/errors/domain-error.js';
import { toDto } from '../../common/validation/field.js';
import { InputValidationPipe } from '../../common/validation/validation.pipe.js';
import type { Owner } from '../current-owner.js';
import { AutomationEventRepository } from '../events/automation-event.repository.js';
import { CreateAutomationDto } from './automation.dto.js';
import type { DraftReportDto, ValidateDraftDto } from './draft.dto.js';
import { type IncomingEvent, mismatch } from './event-match.js';
import { nextTimes } from './schedule.js';
import { toTrigger, TriggerDto } from './trigger.dto.js';

const NEXT_TIMES = 5;
const ENDPOINT = '/v1/preset/prompt';
const NO_ENDPOINT = {
  field: null,
  code: 'not_offered',
  message: `Only drafts for ${ENDPOINT} are offered here.`,
};

const PIPE = new InputValidationPipe(CreateAutomationDto);

@Injectable()
export class DraftsService {
  constructor(
    private readonly clock: Clock,
    private readonly events: AutomationEventRepository,
  ) {}

  async validate(owner: Owner, given: ValidateDraftDto): Promise<DraftReportDto> {
    const draft = given.draft ?? { name: 'Draft', prompt: 'Draft', trigger: given.trigger ?? null };
    const problems = await problemsOf(draft);
    const isOffered = (given.endpoint ?? ENDPOINT) === ENDPOINT;
    const errors = isOffered ? problems.map(toDraftProblem) : [NO_ENDPOINT];
    // A good trigger is looked at, whatever else is wrong.
    const isGood = problems.every(({ loc: [, member] }) => member !== 'trigger');
    const trigger = isGood ? toTrigger(toDto(TriggerDto, Object(draft['trigger']))) : null;
    const times = trigger?.type === 'cron' ? nextTimes(trigger, this.clock.now(), NEXT_TIMES) : [];
    const event = trigger?.type === 'event' ? await this.eventFor(owner, given, trigger.source) : null;
    const reason = trigger && event && mismatch(trigger, event);
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

  /** The one that is given, else the last one of the source. */
  private async eventFor(
    owner: Owner,
    { event, sampleEvent }: ValidateDraftDto,
    source: string,
  ): Promise<IncomingEvent | null> {
    if (event || sampleEvent) {
      return { source, key: event?.key ?? null, payload: event?.payload ?? sampleEvent };
    }
    const last = await this.events.last(owner, source);
    return last && { source, key: last.eventKey, payload: last.payload };
  }
}

function toDraftProblem({ loc, type, msg }: InputProblem): DraftReportDto['errors'][number] {
  return { field: loc.slice(1).join('.') || null, code: type, message: msg };
}

async function problemsOf(draft: object): Promise<readonly InputProblem[]> {
  try {
    await PIPE.transform(draft, { type: 'body' });
    return [];
  } catch (error) {
    if (error instanceof InvalidInputError) {
      return error.problems;
    }
    throw error;
  }
}
