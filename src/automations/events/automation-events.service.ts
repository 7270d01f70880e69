import { randomUUID } from 'node:crypto';
import { setImmediate } from 'node:timers/promises';
import { Injectable, Logger } from '@nestjs/common';
import { KeyedLimit } from '@slipway/common/async.js';
import { BackgroundLoop } from '../../common/background-loop.js';
import { Clock } from '../../common/clock.js';
import type { ReceivedWebhook } from '../../common/crypto/webhook-signature.js';
import { DomainError } from '../../common/errors/domain-error.js';
import { parseHexId } from '../../common/identifiers.js';
import { toldChangeRequest, webhooksOf } from '../../git-providers/git-servers.js';
import { FollowedPullRequestRepository } from '../../v1/app-conversations/followed/followed-pull-request.repository.js';
import { AutomationRepository, type TriggeredAutomation } from '../definitions/automation.repository.js';
import { mismatch } from '../definitions/trigger.dto.js';
import { AutomationRunRepository } from '../runs/automation-run.repository.js';
import {
  AutomationEvent,
  AutomationEventRepository,
  type EventOutcome,
  type NewAutomationEvent,
} from './automation-event.repository.js';
import { AutomationWebhook, AutomationWebhookRepository } from './automation-webhook.repository.js';
import { actorId, type EventActor, EventActors, problemWith } from './event-actors.service.js';
import { identityOf, parseEvent, rulesOf, timeOf } from './event-source.js';

const PRUNE_EVERY_MS = 60_000;
/** Of one organization: under way, and waiting for that. */
const AT_ONCE = 2;
const WAITING = 50;
/** Of those that are larger fewer wait. */
const SMALL_BYTES = 100_000;
const LARGE_WAITING = 20;
/** Checked in place of an unknown webhook, as one of that source would be, so that its answer takes as long. */
function noWebhook(source: string): AutomationWebhook {
  const usual = { signature_scheme: 'hmac_sha256_hex', signature_header: 'x-signature-256' } as const;
  return Object.assign(new AutomationWebhook(), { source, enabled: false, ...usual });
}

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
    private readonly actors: EventActors,
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

  protected async work(): Promise<void> {
    await this.events.prune();
  }

  private async authenticated(id: string, source: string, sent: ReceivedWebhook): Promise<AutomationWebhook> {
    const orgId = parseHexId(id);
    const known = orgId === null ? null : await this.webhooks.findOneBy({ orgId, source });
    const secret = known === null ? randomUUID() : this.webhooks.secretOf(known);
    const webhook = known ?? noWebhook(source);
    const isSigned = rulesOf(webhook).isSigned({ ...sent, secret, now: this.clock.now() });
    if (!isSigned || !webhook.enabled) {
      throw invalidSignature();
    }
    return webhook;
  }

  private async take(webhook: AutomationWebhook, sent: ReceivedWebhook): Promise<ReceivedEvent> {
    const { userId, orgId, source } = webhook;
    const id = randomUUID();
    const payload = parseEvent(sent);
    // First, and for a delivery that is repeated: what it tells may have been lost.
    const host = webhooksOf(source);
    const told = host && toldChangeRequest(host, payload);
    if (told !== null) {
      await this.followed.wake(userId, told, new Date(this.clock.now()));
    }
    const event = { id, userId, orgId, source, payload, ...identityOf(webhook, sent, payload, id) };
    const outcomes = await this.outcomes(event, webhook);
    const cause = { id: `${source}:${event.deliveryId}`, payload, actor: actorId(source, payload) };
    const known = await this.runs.transaction(async (manager) => {
      const before = await this.events.add(manager, event);
      if (before === null) {
        for (const outcome of outcomes.filter(({ reason }) => reason === null)) {
          const automation = await this.automations.lock(manager, { id: outcome.automation_id });
          const made = automation && (await this.runs.make(manager, automation, 'event', cause));
          const { run, reason } = made ?? { run: null, reason: 'It was removed.' };
          Object.assign(outcome, { run_id: run?.id ?? null, reason });
        }
        await manager.update(AutomationEvent, { id }, { outcomes });
      }
      return before;
    });
    return Object.assign(known ?? { id, outcomes }, { isDuplicate: known !== null });
  }

  /** Before there are runs. Not in the transaction, since expressions take their time, and others go on in between. */
  private async outcomes(event: NewAutomationEvent, webhook: AutomationWebhook): Promise<EventOutcome[]> {
    const outcomes: EventOutcome[] = [];
    const actors = new Map<string, Promise<EventActor>>();
    // Always in this order, so that two events never wait for each other.
    for (const automation of await this.automations.ofSource(event.orgId, event.source)) {
      await setImmediate();
      const { id, userId, trigger, state } = automation;
      const inactive = state === 'ACTIVE' ? null : 'It is not active.';
      const reason = inactive ?? mismatch(trigger, { ...event, key: event.eventKey });
      if (reason === null && !actors.has(userId)) {
        actors.set(userId, this.actors.find(userId, webhook, event.payload));
      }
      const actor = reason === null ? await actors.get(userId) : undefined;
      const refusal = actor && (await this.refusal(automation, actor, event.payload));
      if (refusal && actor.failure !== null) {
        // Nothing is stored, so that the next delivery of the host is judged again.
        throw actor.failure;
      }
      outcomes.push({ automation_id: id, run_id: null, reason: reason ?? refusal ?? null });
    }
    return outcomes;
  }

  /** Why the one who caused an event starts no run; null for whom the trigger is for. */
  private async refusal(
    { id, trigger }: TriggeredAutomation,
    actor: EventActor,
    payload: unknown,
  ): Promise<string | null> {
    if (actor.isService) {
      return 'The service wrote it.';
    }
    const isOwnWork = actor.isSelf && (await this.runs.wasAtWork(id, timeOf(payload) ?? this.clock.now()));
    return isOwnWork
      ? 'The account of its owner wrote it while a run was under way.'
      : problemWith(actor, trigger);
  }
}
