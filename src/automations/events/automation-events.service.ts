import { randomUUID } from 'node:crypto';
import { setImmediate } from 'node:timers/promises';
import { Injectable, Logger } from '@nestjs/common';
import { KeyedLimit } from '@slipway/common/async.js';
import { BackgroundLoop } from '../../common/background-loop.js';
import { Clock } from '../../common/clock.js';
import type { ReceivedWebhook } from '../../common/crypto/webhook-signature.js';
import { textHead } from '@slipway/common/well-formed-text.js';
import { DomainError } from '../../common/errors/domain-error.js';
import { parseHexId } from '../../common/identifiers.js';
import { toldChangeRequest, webhooksOf } from '../../git-providers/git-servers.js';
import { FollowedPullRequestRepository } from '../../v1/app-conversations/followed/followed-pull-request.repository.js';
import { AutomationRepository } from '../definitions/automation.repository.js';
import { mismatch } from '../definitions/trigger.dto.js';
import { AutomationRunRepository } from '../runs/automation-run.repository.js';
import {
  type AutomationEvent,
  AutomationEventRepository,
  type EventOutcome,
  type NewAutomationEvent,
} from './automation-event.repository.js';
import { AutomationWebhook, AutomationWebhookRepository } from './automation-webhook.repository.js';
import { identityOf, parseEvent, rulesOf } from './event-source.js';

const PRUNE_EVERY_MS = 60_000;
/** Of one organization: under way, and waiting for that. */
const AT_ONCE = 2;
const WAITING = 50;
/** Of those that are larger fewer wait. */
const SMALL_BYTES = 100_000;
const LARGE_WAITING = 20;
/** Characters; lists of keys may have many more. */
const MAX_REASON = 500;
const PAYLOAD_GONE =
  'Its filter cannot be tried any more: payloads without a run are kept until ten newer ones have come.';
const MADE_NONE =
  'It matches now, but made no run then: it was changed since, or too many of its runs had been skipped.';
/** Checked in place of an unknown webhook, so that its answer takes as long. */
const NO_WEBHOOK = Object.assign(new AutomationWebhook(), { source: 'github', enabled: false });

/** The same for what is unknown. */
export function invalidSignature(): DomainError {
  return new DomainError('unauthorized', 'invalid_signature', 'The signature of the event is not valid.');
}

type ReceivedEvent = Pick<AutomationEvent, 'id' | 'outcomes'> & { isDuplicate: boolean };

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
   * @throws DomainError unauthorized (`invalid_signature`), rate_limited
   * @throws MalformedBodyError for a body that is not JSON
   */
  async receive(orgId: string, source: string, sent: ReceivedWebhook): Promise<ReceivedEvent> {
    const webhook = await this.authenticated(orgId, source, sent);
    const most = sent.body.length > SMALL_BYTES ? LARGE_WAITING : WAITING;
    if (this.ofOrganizations.waiting(webhook.orgId) >= most) {
      const detail = 'Too many events of this organization wait.';
      throw new DomainError('rate_limited', 'rate_limited', detail, { retryAfterSeconds: 2 });
    }
    return this.ofOrganizations.run(webhook.orgId, () => this.take(webhook, sent));
  }

  /** What an event meant for each automation of its source; why one made no run is found out now. */
  async matches(event: AutomationEvent): Promise<EventOutcome[]> {
    const { payload, eventKey: key, source } = event;
    return this.ofOrganizations.run(event.orgId, async () => {
      const outcomes: EventOutcome[] = [];
      for (const { id, trigger, state } of await this.automations.ofSource(event.orgId, source)) {
        await setImmediate();
        const isBlind = payload === null && 'filter' in trigger;
        const inactive = state === 'ACTIVE' ? null : 'It is not active.';
        const reason =
          inactive ?? mismatch(isBlind ? { ...trigger, filter: null } : trigger, { source, key, payload });
        const told = textHead(reason ?? (isBlind ? PAYLOAD_GONE : MADE_NONE), MAX_REASON);
        const made = event.outcomes.find(({ automation_id }) => automation_id === id);
        outcomes.push(made ?? { automation_id: id, run_id: null, reason: told });
      }
      return outcomes;
    });
  }

  protected async work(): Promise<void> {
    await this.events.prune();
  }

  private async authenticated(id: string, source: string, sent: ReceivedWebhook): Promise<AutomationWebhook> {
    const orgId = parseHexId(id);
    const known = orgId === null ? null : await this.webhooks.findOneBy({ orgId, source });
    const secret = known === null ? randomUUID() : this.webhooks.secretOf(known);
    const webhook = known ?? NO_WEBHOOK;
    const isSigned = await rulesOf(webhook).isSigned({ ...sent, secret, now: this.clock.now() });
    if (!isSigned || !webhook.enabled) {
      throw invalidSignature();
    }
    return webhook;
  }

  private async take(webhook: AutomationWebhook, sent: ReceivedWebhook): Promise<ReceivedEvent> {
    const { userId, orgId, source } = webhook;
    const id = randomUUID();
    const payload = parseEvent(sent);
    const event = { id, userId, orgId, source, payload, ...identityOf(webhook, sent, payload, id) };
    const outcomes = await this.outcomes(event);
    const known = await this.runs.transaction(async (manager) => {
      const before = await this.events.add(manager, event);
      if (before === null) {
        const causeId = `${source}:${event.deliveryId}`;
        for (const outcome of outcomes.filter(({ reason }) => reason === null)) {
          const automation = await this.automations.lock(manager, { id: outcome.automation_id });
          const made = automation && (await this.runs.make(manager, automation, 'event', causeId, payload));
          const { run, reason } = made ?? { run: null, reason: 'It was removed.' };
          Object.assign(outcome, { run_id: run?.id ?? null, reason });
        }
        await this.events.settle(
          manager,
          event,
          outcomes.filter(({ run_id }) => run_id !== null),
        );
      }
      return before;
    });
    // Also for a delivery that is repeated: what it tells may have been lost.
    const host = webhooksOf(source);
    const told = host && toldChangeRequest(host, payload);
    if (told !== null) {
      await this.followed.wake(userId, told, new Date(this.clock.now()));
    }
    return Object.assign(known ?? { id, outcomes }, { isDuplicate: known !== null });
  }

  /** Before there are runs. Not in the transaction, since expressions take their time, and others go on in between. */
  private async outcomes(event: NewAutomationEvent): Promise<EventOutcome[]> {
    const outcomes: EventOutcome[] = [];
    // Always in this order, so that two events never wait for each other.
    for (const { id, trigger, state } of await this.automations.ofSource(event.orgId, event.source)) {
      await setImmediate();
      const inactive = state === 'ACTIVE' ? null : 'It is not active.';
      const reason = inactive ?? mismatch(trigger, { ...event, key: event.eventKey });
      outcomes.push({ automation_id: id, run_id: null, reason });
    }
    return outcomes;
  }
}
