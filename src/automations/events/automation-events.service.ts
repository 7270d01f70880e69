import { randomUUID } from 'node:crypto';
import { setImmediate } from 'node:timers/promises';
import { isDeepStrictEqual } from 'node:util';
import { Injectable, Logger } from '@nestjs/common';
import { KeyedLimit } from '@slipway/common/async.js';
import { BackgroundLoop } from '../../common/background-loop.js';
import { Clock } from '@slipway/common/clock.js';
import type { ReceivedWebhook } from '@slipway/common/webhook-signature.js';
import { textHead } from '@slipway/common/well-formed-text.js';
import { DomainError } from '../../common/errors/domain-error.js';
import { parseHexId } from '@slipway/common/identifiers.js';
import { toldChangeRequest, webhooksOf } from '@slipway/git-providers/git-servers.js';
import { FollowedPullRequestRepository } from '../../v1/app-conversations/followed/followed-pull-request.repository.js';
import { AutomationRepository, type TriggeredAutomation } from '../definitions/automation.repository.js';
import { mismatch } from '../definitions/trigger.dto.js';
import { AutomationRunRepository, type RunCause } from '../runs/automation-run.repository.js';
import {
  type AutomationEvent,
  AutomationEventRepository,
  type EventOutcome,
  type KnownEvent,
  type NewAutomationEvent,
} from './automation-event.repository.js';
import { AutomationWebhook, AutomationWebhookRepository } from './automation-webhook.repository.js';
import { actorId, type EventActor, EventActors, problemWith } from './event-actors.service.js';
import { identityOf, parseEvent, rulesOf, smallEvent, timeOf } from './event-source.js';
import { runEvent, subjectOf } from './event-subject.js';

const PRUNE_EVERY_MS = 60_000;
/** How many events of one organization are worked on at once, and how many wait. */
const AT_ONCE = 2;
const WAITING = 50;
/** Events larger than this count as large, and fewer of them may wait. */
const SMALL_BYTES = 100_000;
const LARGE_WAITING = 20;
/** Of one event, whose automations may be changed each time meanwhile. */
const MOST_JUDGEMENTS = 3;
/** Characters; lists of keys may have many more. */
const MAX_REASON = 500;
const PAYLOAD_GONE =
  'Its filter cannot be tried any more: payloads without a run are kept until ten newer ones have come.';
const MADE_NONE =
  'It matches now, but made no run then: it was changed since, or too many of its runs had been skipped.';
/** Checked in place of an unknown webhook, as one of that source would be, so that its answer takes as long. */
function noWebhook(source: string): AutomationWebhook {
  const usual = { signature_scheme: 'hmac_sha256_hex', signature_header: 'x-signature-256' } as const;
  return Object.assign(new AutomationWebhook(), { source, enabled: false, ...usual });
}

/** The same for what is unknown. */
export function invalidSignature(): DomainError {
  return new DomainError('invalid_signature', 'The signature of the event is not valid.');
}

interface Judgement {
  /** As it was when it was judged. */
  automation: TriggeredAutomation;
  /** Why the event does not start it; null where it does. */
  reason: string | null;
  /** Set where the host did not answer who caused the event, and may answer later. */
  failure: DomainError | null;
}

/** Takes back what was stored of an event. */
class ChangedMeanwhile extends Error {}

type ReceivedEvent = KnownEvent & { isDuplicate: boolean };

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
   * @param repository whose secret signs the event; null for that of the source
   * @throws DomainError unauthorized (`invalid_signature`), rate_limited
   * @throws MalformedBodyError for a body that is not JSON
   */
  async receive(
    orgId: string,
    source: string,
    received: ReceivedWebhook,
    repository: string | null,
  ): Promise<ReceivedEvent> {
    const webhook = await this.authenticated(orgId, source, received, repository);
    const sent = await smallEvent(received);
    const most = sent.body.length > SMALL_BYTES ? LARGE_WAITING : WAITING;
    if (this.ofOrganizations.waiting(webhook.orgId) >= most) {
      const detail = 'Too many events of this organization wait.';
      throw new DomainError('rate_limited', detail, { retryAfterSeconds: 2 });
    }
    return this.ofOrganizations.run(webhook.orgId, async () =>
      this.take(await this.stillTaken(webhook), sent, repository),
    );
  }

  /** What an event meant for each automation of its source; why one made no run is found out now. */
  async matches(event: AutomationEvent): Promise<EventOutcome[]> {
    const { orgId, source, payload, createdAt } = event;
    return this.ofOrganizations.run(orgId, async () => {
      const webhook = await this.webhooks.findOneBy({ orgId, source });
      const judged = await this.judge(event, webhook ?? noWebhook(source), createdAt.getTime());
      return judged.map(({ automation: { id }, reason }) => {
        const told = textHead(reason ?? (payload === null ? PAYLOAD_GONE : MADE_NONE), MAX_REASON);
        const made = event.outcomes.find(({ automation_id }) => automation_id === id);
        return made ?? { automation_id: id, run_id: null, reason: told };
      });
    });
  }

  protected async work(): Promise<void> {
    await this.events.prune();
  }

  private async authenticated(
    id: string,
    source: string,
    sent: ReceivedWebhook,
    repository: string | null,
  ): Promise<AutomationWebhook> {
    const orgId = parseHexId(id);
    const known = orgId === null ? null : await this.webhooks.findOneBy({ orgId, source });
    const secret = known === null ? randomUUID() : this.webhooks.secretOf(known, repository);
    const webhook = known ?? noWebhook(source);
    const isSigned = rulesOf(webhook).isSigned({ ...sent, secret, now: this.clock.now() });
    if (!isSigned || !webhook.enabled) {
      throw invalidSignature();
    }
    return webhook;
  }

  /** What was signed with an old secret, or for a webhook that is disabled meanwhile, is refused as it is from then on. */
  private async stillTaken(
    webhook: AutomationWebhook,
    manager = this.webhooks.manager,
  ): Promise<AutomationWebhook> {
    const now = await manager.findOneBy(AutomationWebhook, { id: webhook.id, enabled: true });
    if (now === null || this.webhooks.secretOf(now) !== this.webhooks.secretOf(webhook)) {
      throw invalidSignature();
    }
    return now;
  }

  private async take(
    webhook: AutomationWebhook,
    sent: ReceivedWebhook,
    repository: string | null,
  ): Promise<ReceivedEvent> {
    const { userId, orgId, source } = webhook;
    const id = randomUUID();
    const payload = parseEvent(sent);
    const host = webhooksOf(source);
    const told = host && toldChangeRequest(host, payload);
    if (repository !== null && told?.repository.toLowerCase() !== repository.toLowerCase()) {
      throw invalidSignature();
    }
    // First, and for a delivery that is repeated: what it tells may have been lost.
    if (told !== null) {
      await this.followed.wake(userId, told);
    }
    const identity = identityOf(webhook, sent, payload, id);
    const subject = subjectOf(identity.eventKey, payload);
    const event = { id, userId, orgId, source, payload, subject, ...identity };
    const cause = {
      id: `${source}:${event.deliveryId}`,
      payload,
      actor: actorId(source, payload),
      event: runEvent(subject, source, told, payload),
    };
    for (let left = MOST_JUDGEMENTS - 1; ; left -= 1) {
      const judged = await this.judge(event, webhook, this.clock.now());
      const failure = judged.find((each) => each.failure !== null)?.failure;
      if (failure) {
        // Nothing is stored, so that the next delivery of the host is judged again.
        throw failure;
      }
      try {
        return await this.store(webhook, event, judged, cause, left > 0);
      } catch (error) {
        if (!(error instanceof ChangedMeanwhile)) {
          throw error;
        }
      }
    }
  }

  /** @throws ChangedMeanwhile if an automation is not as it was judged, and the event may be judged again */
  private async store(
    webhook: AutomationWebhook,
    event: NewAutomationEvent,
    judged: readonly Judgement[],
    cause: RunCause,
    mayJudgeAgain: boolean,
  ): Promise<ReceivedEvent> {
    const outcomes: EventOutcome[] = [];
    const known = await this.runs.transaction(async (manager) => {
      const before = await this.events.add(manager, event);
      if (before === null) {
        // Hosts and expressions have taken their time.
        await this.stillTaken(webhook, manager);
        for (const each of judged.filter(({ reason }) => reason === null)) {
          const { id: automation_id } = each.automation;
          const automation = await this.automations.lock(manager, { id: automation_id });
          if (automation === null) {
            continue;
          }
          if (isAsJudged(each.automation, automation)) {
            const { run, reason } = await this.runs.make(manager, automation, 'event', cause);
            outcomes.push(...(run === null ? [] : [{ automation_id, run_id: run.id, reason }]));
          } else if (mayJudgeAgain) {
            throw new ChangedMeanwhile();
          } else {
            this.logger.warn('failed to judge event', { automation_id, event_id: event.id });
          }
        }
        await this.events.settle(manager, event, outcomes);
      }
      return before;
    });
    return Object.assign(known ?? { id: event.id, outcomes }, { isDuplicate: known !== null });
  }

  /**
   * Judges an event for each automation of its source. Runs before the transaction, since expressions and hosts take time.
   * @param at when the event arrived, epoch milliseconds: counts where the event names no time of its own
   */
  private async judge(
    { orgId, source, eventKey: key, payload }: NewAutomationEvent,
    webhook: AutomationWebhook,
    at: number,
  ): Promise<Judgement[]> {
    const judged: Judgement[] = [];
    const actors = new Map<string, Promise<EventActor>>();
    // Always in this order, so that two events never wait for each other.
    for (const automation of await this.automations.ofSource(orgId, source)) {
      await setImmediate();
      const { userId, trigger, state } = automation;
      const seen = payload === null ? { ...trigger, filter: null } : trigger;
      const inactive = state === 'ACTIVE' ? null : 'It is not active.';
      const reason = inactive ?? mismatch(seen, { source, key, payload });
      if (reason !== null || payload === null) {
        judged.push({ automation, reason, failure: null });
        continue;
      }
      const actor = actors.get(userId) ?? this.actors.find(userId, webhook, payload);
      actors.set(userId, actor);
      const refusal = await this.refusal(automation, await actor, timeOf(payload) ?? at);
      judged.push({ automation, reason: refusal, failure: refusal === null ? null : (await actor).failure });
    }
    return judged;
  }

  /** Why the one who caused an event starts no run; null for whom the trigger is for. */
  private async refusal(
    { id, trigger }: TriggeredAutomation,
    actor: EventActor,
    at: number,
  ): Promise<string | null> {
    if (actor.isService) {
      return 'The service wrote it.';
    }
    const isOwnWork = actor.isSelf && (await this.runs.wasAtWork(id, at));
    return isOwnWork
      ? 'The account of its owner wrote it while a run was under way.'
      : problemWith(actor, trigger);
  }
}

/** The trigger decides who starts it, and may have been changed since; the automation may have been paused. */
function isAsJudged(judged: TriggeredAutomation, { state, trigger }: TriggeredAutomation): boolean {
  return state === judged.state && isDeepStrictEqual(trigger, judged.trigger);
}
