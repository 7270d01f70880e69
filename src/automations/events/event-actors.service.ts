import { Injectable } from '@nestjs/common';
import { errorMessage } from '@slipway/common/errors/error-message.js';
import { DomainError } from '../../common/errors/domain-error.js';
import { evaluate, isTruthy } from '@slipway/common/jmespath.js';
import { toldChangeRequest, webhooksOf } from '@slipway/git-providers/git-servers.js';
import { isReply } from '../../follow/round-talk.js';
import { mayPass } from '../../git-providers/git-provider-problem.js';
import { RepositoryAccessService } from '../../git-providers/repository-access.service.js';
import type { Trigger } from '../definitions/trigger.dto.js';
import type { AutomationWebhook } from './automation-webhook.repository.js';
import { bodyOf } from './event-source.js';

/** Who has caused an event. */
export interface EventActor {
  /** The account whose token the owner of the automations has stored. */
  isSelf: boolean;
  /** The service itself has written it. */
  isService: boolean;
  /** Why the sender does not count as a writer of the repository; null for a writer. */
  problem: string | null;
  /** Why the host gives no answer this time. */
  failure: DomainError | null;
}

/** Judges who has caused an event. What cannot be known counts as a stranger. */
@Injectable()
export class EventActors {
  constructor(private readonly repositories: RepositoryAccessService) {}

  /** @param userId whose token the host is asked with */
  async find(
    userId: string,
    { source, writers_expr }: Pick<AutomationWebhook, 'source' | 'writers_expr'>,
    payload: unknown,
  ): Promise<EventActor> {
    const host = webhooksOf(source);
    if (host === null) {
      return { ...NOBODY, problem: problemByExpression(writers_expr, payload) };
    }
    const actor = host.actorOf(payload);
    const repository = toldChangeRequest(host, payload)?.repository ?? null;
    if (actor === null || repository === null) {
      return { ...NOBODY, problem: notAWriter('the event names nobody, or no repository') };
    }
    try {
      const { mayWrite, isSelf } = await this.repositories.rightsOf(userId, { source }, repository, actor);
      const problem = mayWrite || actor.isOwner ? null : `${actor.name} may not push to ${repository}`;
      return {
        isSelf,
        isService: isReply({ own: isSelf, body: bodyOf(payload) }),
        problem: problem && notAWriter(problem),
        failure: null,
      };
    } catch (error) {
      if (!(error instanceof DomainError)) {
        throw error;
      }
      // What cannot be told from the account's own work must not start more of it.
      const unknown = { isSelf: actor.isOwner, isService: false };
      return actor.isOwner
        ? { ...unknown, problem: null, failure: null }
        : { ...unknown, problem: notAWriter(error.message), failure: mayPass(error) ? error : null };
    }
  }
}

const NOBODY = { isSelf: false, isService: false, failure: null };

/** The same for all events of an account; null where the event names no sender. */
export function actorId(source: string, payload: unknown): string | null {
  const actor = webhooksOf(source)?.actorOf(payload) ?? null;
  return actor && `${source}:${actor.id ?? actor.name}`;
}

/** Why an event of the actor does not start what has the trigger; null when it does. */
export function problemWith({ problem }: EventActor, trigger: Trigger): string | null {
  return trigger.type === 'event' && trigger.from === 'anyone' ? null : problem;
}

function notAWriter(why: string): string {
  return `not_a_writer: ${why}`;
}

function problemByExpression(expression: string | null, payload: unknown): string | null {
  if (expression === null) {
    return notAWriter('the webhook of this source has no writers_expr');
  }
  try {
    const isWriter = isTruthy(evaluate(expression, payload));
    return isWriter ? null : notAWriter('writers_expr of the webhook is false for the event');
  } catch (error) {
    return notAWriter(`writers_expr of the webhook failed: ${errorMessage(error)}`);
  }
}
