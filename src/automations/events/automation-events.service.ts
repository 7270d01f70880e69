import { createHash, randomUUID } from 'node:crypto';
import type { IncomingHttpHeaders } from 'node:http';
import { setImmediate } from 'node:timers/promises';
import { Injectable, Logger } from '@nestjs/common';
import type { EntityManager } from 'typeorm';
import { KeyedLimit } from '@slipway/common/async.js';
import { BackgroundLoop } from '../../common/background-loop.js';
import { Clock } from '../../common/clock.js';
import { DomainError } from '../../common/errors/domain-error.js';
import { parseHexId } from '../../common/identifiers.js';
import { toldPullRequest } from '../../follow/told-pull-request.js';
import { FollowedPullRequestRepository } from '../../v1/app-conversations/followed/followed-pull-request.repository.js';
import { found, type Owner } from '../current-owner.js';
import { AutomationRepository } from '../definitions/automation.repository.js';
import { mismatch } from '../definitions/event-match.js';
import { AutomationRunRepository } from '../runs/automation-run.repository.js';
import {
  AutomationEvent,
  AutomationEventRepository,
  type EventOutcome,
  type NewAutomationEvent,
} from './automation-event.repository.js';
import { AutomationWebhook, AutomationWebhookRepository } from './automation-webhook.repository.js';
import { parseEvent } from './event-body.js';
import { BUILT_IN_SOURCES, eventSource } from './event-source.js';

const PRUNE_EVERY_MS = 60_000;
/** Of one organization: under way, and waiting for that. */
const AT_ONCE = 2;
const WAITING = 20;
/** Checked in place of an unknown webhook, so that its answer takes as long. */
const NO_WEBHOOK = Object.assign(new AutomationWebhook(), { source: 'github', enabled: false });

export interface DeliveredEvent {
  orgId: string;
  source: string;
  headers: IncomingHttpHeaders;
  body: Buffer;
}

type EventMatch = Pick<EventOutcome, 'automation_id' | 'reason'>;

export interface ReceivedEvent {
  event: Pick<AutomationEvent, 'id' | 'outcomes'>;
  isDuplicate: boolean;
}

/** Takes events of hosts: an event and the runs that it makes are stored together, once for each delivery. */
@Injectable()
export class AutomationEventsService extends BackgroundLoop {
  private readonly ofOrganizations = new KeyedLimit(AT_ONCE);

  constructor(
    private readonly webhooks: AutomationWebhookRepository,
    private readonly events: AutomationEventRepository,
    private readonly automations: AutomationRepository,
    private readonly runs: AutomationRunRepository,
    private readonly followed: FollowedPullRequestRepository,
    private readonly clock: Clock,
  ) {
    super(PRUNE_EVERY_MS, new Logger('Automations'), 'failed to remove old events');
  }

  /**
   * @throws DomainError unauthorized (`invalid_signature`), the same for what is unknown; rate_limited; too_large
   * @throws InvalidInputError for a body that is not JSON
   */
  async receive(delivered: DeliveredEvent): Promise<ReceivedEvent> {
    const webhook = await this.authenticated(delivered);
    if (this.ofOrganizations.waiting(webhook.orgId) >= WAITING) {
      const detail = 'Too many events of this organization wait.';
      throw new DomainError('rate_limited', 'rate_limited', detail, { retryAfterSeconds: 2 });
    }
    return this.ofOrganizations.run(webhook.orgId, () => this.take(webhook, delivered));
  }

  async find(owner: Owner, id: string): Promise<AutomationEvent> {
    return found(await this.events.findOneBy({ ...owner, id }), 'event');
  }

  protected async work(): Promise<void> {
    await this.events.prune();
  }

  private async authenticated({ orgId, source, headers, body }: DeliveredEvent): Promise<AutomationWebhook> {
    const id = parseHexId(orgId);
    const known = id === null ? null : await this.webhooks.findSource(id, source);
    const webhook = known ?? NO_WEBHOOK;
    const secret = known === null ? randomUUID() : this.webhooks.secretOf(known);
    const signed = { headers, body, secret, now: this.clock.now() };
    const isSigned = await eventSource(webhook).isSigned(signed);
    if (!isSigned || !webhook.enabled) {
      throw new DomainError('unauthorized', 'invalid_signature', 'The signature of the event is not valid.');
    }
    return webhook;
  }

  private async take(webhook: AutomationWebhook, { headers, body }: DeliveredEvent): Promise<ReceivedEvent> {
    const payload = parseEvent(headers, body);
    const source = eventSource(webhook);
    const id = randomUUID();
    const event: NewAutomationEvent = {
      id,
      userId: webhook.userId,
      orgId: webhook.orgId,
      source: webhook.source,
      deliveryId: source.deliveryId(headers) ?? id,
      bodyDigest: source.saysWhen(payload) ? createHash('sha256').update(body).digest('hex') : null,
      eventKey: source.eventKey(headers, payload),
      payload,
    };
    const matches = await this.matches(event);
    const received = await this.runs.transaction(async (manager) => {
      const known = await this.events.add(manager, event);
      if (known !== null) {
        return { event: known, isDuplicate: true };
      }
      const outcomes = await this.makeRuns(manager, event, matches);
      await manager.update(AutomationEvent, { id }, { outcomes });
      return { event: { id, outcomes }, isDuplicate: false };
    });
    await this.wakeFollowed(event);
    return received;
  }

  /** Also for a delivery that is repeated: what it tells may have been lost. */
  private async wakeFollowed({ userId, source, payload }: NewAutomationEvent): Promise<void> {
    const told = BUILT_IN_SOURCES.includes(source) ? toldPullRequest(payload) : null;
    if (told !== null) {
      await this.followed.wake(userId, told, new Date(this.clock.now()));
    }
  }

  /** Before the transaction, since expressions take their time, and others go on in between. */
  private async matches({
    orgId,
    source,
    eventKey: key,
    payload,
  }: NewAutomationEvent): Promise<EventMatch[]> {
    const matches: EventMatch[] = [];
    // Always in this order, so that two events never wait for each other.
    for (const { id, trigger, state } of await this.automations.ofSource(orgId, source)) {
      await setImmediate();
      const inactive = state === 'ACTIVE' ? null : 'It is not active.';
      matches.push({ automation_id: id, reason: inactive ?? mismatch(trigger, { source, key, payload }) });
    }
    return matches;
  }

  private async makeRuns(
    manager: EntityManager,
    event: NewAutomationEvent,
    matches: readonly EventMatch[],
  ): Promise<EventOutcome[]> {
    const outcomes: EventOutcome[] = [];
    for (const { automation_id, reason } of matches) {
      const outcome =
        reason === null ? await this.makeRun(manager, automation_id, event) : { run_id: null, reason };
      outcomes.push({ automation_id, ...outcome });
    }
    return outcomes;
  }

  private async makeRun(
    manager: EntityManager,
    automationId: string,
    { source, deliveryId, payload }: NewAutomationEvent,
  ): Promise<Omit<EventOutcome, 'automation_id'>> {
    const automation = await this.automations.lock(manager, { id: automationId });
    if (automation === null) {
      return { run_id: null, reason: 'It was removed.' };
    }
    const cause = { trigger: 'event', id: `${source}:${deliveryId}` } as const;
    const { run, reason } = await this.runs.make(manager, automation, cause, payload);
    return { run_id: run?.id ?? null, reason };
  }
}
