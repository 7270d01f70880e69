import { Injectable } from '@nestjs/common';
import { Clock } from '../../common/clock.js';
import { type InputProblem, InvalidInputError } from '../../common/errors/domain-error.js';
import { InputValidationPipe } from '../../common/validation/validation.pipe.js';
import type { Owner } from '../current-owner.js';
import { AutomationEventRepository } from '../events/automation-event.repository.js';
import { CreateAutomationDto, TriggerDraftDto } from './automation.dto.js';
import type { DraftReportDto, ValidateDraftDto } from './drafts.controller.js';
import { type IncomingEvent, mismatch } from './event-match.js';
import { nextTimes } from './schedule.js';
import { type EventTrigger, toTrigger } from './trigger.js';

const NEXT_TIMES = 5;
const ENDPOINT = '/v1/preset/prompt';
const NO_ENDPOINT = {
  field: null,
  code: 'not_offered',
  message: `Only drafts for ${ENDPOINT} are offered here.`,
};

@Injectable()
export class DraftsService {
  private readonly drafts = new InputValidationPipe(CreateAutomationDto);
  private readonly triggers = new InputValidationPipe(TriggerDraftDto);

  constructor(
    private readonly clock: Clock,
    private readonly events: AutomationEventRepository,
  ) {}

  async validate(owner: Owner, given: ValidateDraftDto): Promise<DraftReportDto> {
    const { draft, endpoint = ENDPOINT } = given;
    const triggerDraft = { trigger: (draft ? draft['trigger'] : given.trigger) ?? null };
    // A good trigger is looked at, whatever else is wrong.
    const checked = await checkedBy(this.triggers, triggerDraft);
    const { problems } = draft ? await checkedBy(this.drafts, draft) : checked;
    const errors = endpoint === ENDPOINT ? problems.map(toDraftProblem) : [NO_ENDPOINT];
    const trigger = checked.dto instanceof TriggerDraftDto ? toTrigger(checked.dto.trigger) : null;
    const times = trigger?.type === 'cron' ? nextTimes(trigger, this.clock.now(), NEXT_TIMES) : [];
    const event = trigger?.type === 'event' ? await this.eventFor(owner, given, trigger) : null;
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
    { source }: EventTrigger,
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

interface Checked {
  dto?: unknown;
  problems: readonly InputProblem[];
}

async function checkedBy(pipe: InputValidationPipe, value: object): Promise<Checked> {
  try {
    return { dto: await pipe.transform(value, { type: 'body', metatype: Object }), problems: [] };
  } catch (error) {
    if (error instanceof InvalidInputError) {
      return { problems: error.problems };
    }
    throw error;
  }
}
