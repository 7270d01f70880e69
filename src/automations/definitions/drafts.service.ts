import { Injectable } from '@nestjs/common';
import { Clock } from '../../common/clock.js';
import { InvalidInputError } from '../../common/errors/domain-error.js';
import { InputValidationPipe } from '../../common/validation/validation.pipe.js';
import type { Owner } from '../current-owner.js';
import { AutomationEventRepository } from '../events/automation-event.repository.js';
import { CreateAutomationDto, TriggerDraftDto } from './automation.dto.js';
import type { DraftReportDto, ValidateDraftDto } from './drafts.controller.js';
import { type IncomingEvent, mismatch } from './event-match.js';
import { nextTimes } from './schedule.js';
import { type CronTrigger, type EventTrigger, isCron, toTrigger } from './trigger.js';

const NEXT_TIMES = 5;
const BODY = { type: 'body', metatype: Object } as const;

type Problem = DraftReportDto['errors'][number];

/** Says what an automation would do, without keeping it. */
@Injectable()
export class DraftsService {
  private readonly drafts = new InputValidationPipe(CreateAutomationDto);
  private readonly triggers = new InputValidationPipe(TriggerDraftDto);

  constructor(
    private readonly clock: Clock,
    private readonly events: AutomationEventRepository,
  ) {}

  async validate(owner: Owner, given: ValidateDraftDto): Promise<DraftReportDto> {
    const errors = await this.problems(given);
    const trigger = await this.goodTrigger(given);
    const event = trigger === null || isCron(trigger) ? null : await this.eventFor(owner, given, trigger);
    const reason = trigger === null || event === null ? null : mismatch(trigger, event);
    const matched = event === null ? null : reason === null;
    return {
      valid: errors.length === 0,
      errors,
      next_times:
        trigger !== null && isCron(trigger)
          ? nextTimes(trigger, this.clock.now(), NEXT_TIMES).map((time) => time.toISOString())
          : [],
      matched,
      reasons: reason === null ? [] : [reason],
      sampleEventMatched: matched,
    };
  }

  /** The one that is given, else the last one of the source. */
  private async eventFor(
    owner: Owner,
    given: ValidateDraftDto,
    { source }: EventTrigger,
  ): Promise<IncomingEvent | null> {
    const sample = sampleOf(given, source);
    const last = sample === null ? await this.events.last(owner, source) : null;
    return last === null ? sample : { source, key: last.eventKey, payload: last.payload };
  }

  /** Null where the trigger itself is wrong, whatever else is. */
  private async goodTrigger({
    draft,
    trigger,
  }: ValidateDraftDto): Promise<CronTrigger | EventTrigger | null> {
    const given = draft === undefined ? trigger : draft['trigger'];
    try {
      const checked = await this.triggers.transform({ trigger: given ?? null }, BODY);
      return checked instanceof TriggerDraftDto ? toTrigger(checked.trigger) : null;
    } catch (error) {
      if (error instanceof InvalidInputError) {
        return null;
      }
      throw error;
    }
  }

  private async problems({ draft, endpoint, trigger }: ValidateDraftDto): Promise<Problem[]> {
    if (endpoint !== undefined && endpoint !== '/v1/preset/prompt') {
      const message = 'Only drafts for /v1/preset/prompt are offered here.';
      return [{ field: null, code: 'not_offered', message }];
    }
    try {
      await (draft === undefined
        ? this.triggers.transform({ trigger: trigger ?? null }, BODY)
        : this.drafts.transform(draft, BODY));
      return [];
    } catch (error) {
      if (error instanceof InvalidInputError) {
        return error.problems.map(({ loc, type, msg }) => ({
          field: loc.slice(1).join('.') || null,
          code: type,
          message: msg,
        }));
      }
      throw error;
    }
  }
}

function sampleOf({ event, sampleEvent }: ValidateDraftDto, source: string): IncomingEvent | null {
  if (event) {
    return { source, key: event.key, payload: event.payload };
  }
  return sampleEvent ? { source, key: null, payload: sampleEvent } : null;
}
