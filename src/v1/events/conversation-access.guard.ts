import {
  applyDecorators,
  type CanActivate,
  createParamDecorator,
  type ExecutionContext,
  Injectable,
  SetMetadata,
  UseGuards,
} from '@nestjs/common';
import { Reflector } from '@nestjs/core';
import { ApiExtension } from '@nestjs/swagger';
import { DataSource } from 'typeorm';
import { AuditRepository } from '../../audit/audit.repository.js';
import { type Access, readableOnly, requireAccess } from '../../auth/access.js';
import { type AuthenticatedRequest, authenticatedUser } from '../../auth/auth.decorators.js';
import { parseHexId, toHexId } from '@slipway/common/identifiers.js';
import { FURTHER_PROBLEMS, thrown } from '@slipway/api/openapi/api-route.js';
import { unknownConversation } from './events.service.js';
import { AccessedConversationRepository } from './accessed-conversation.repository.js';

const ACCESS = 'slipway:conversation-access';

interface ConversationRequest extends AuthenticatedRequest {
  /** The owner of the conversation that the caller may have; the caller for an unknown one. */
  conversationOwner?: string;
}

/**
 * Finds out on whose behalf a route works on the conversation of its path, so that what it calls knows owners only.
 * Conversations that the caller may not read are looked up among the caller's, where they are unknown.
 */
@Injectable()
export class ConversationAccessGuard implements CanActivate {
  constructor(
    private readonly reflector: Reflector,
    private readonly conversations: AccessedConversationRepository,
    private readonly audit: AuditRepository,
    private readonly dataSource: DataSource,
  ) {}

  /** @throws DomainError forbidden for a conversation that the caller may only read; not_found for one that is not of the key */
  async canActivate(context: ExecutionContext): Promise<boolean> {
    const access = this.reflector.get<Access>(ACCESS, context.getHandler());
    const request = context.switchToHttp().getRequest<ConversationRequest>();
    const caller = authenticatedUser(context);
    const id = parseHexId(String(request.params['conversation_id'] ?? request.params['id']));
    const row = id === null ? null : await this.conversations.find(id);
    const isKnown = row !== null && requireAccess(caller, access, row);
    if (!isKnown && caller.repositories !== null) {
      // Services would find it among those of the key's user.
      throw unknownConversation();
    }
    request.conversationOwner = isKnown ? row.userId : caller.id;
    if (id !== null && request.conversationOwner !== caller.id && access === 'steer') {
      await this.noteTakeover(
        id,
        request.conversationOwner,
        `${request.method} ${String(request.route.path)}`,
      );
    }
    return true;
  }

  private async noteTakeover(id: string, ownerId: string, operation: string): Promise<void> {
    const entry = {
      action: 'conversation.take_over',
      resourceId: toHexId(id),
      ownerId,
      details: { operation },
    } as const;
    await this.dataSource.transaction((manager) =>
      this.audit.append(manager, { ...entry, outcome: 'requested' }),
    );
  }
}

/** Says what a route does to the conversation that `id`, or `conversation_id`, in its path names. */
export function NeedsAccess(access: Access): MethodDecorator {
  return applyDecorators(
    SetMetadata(ACCESS, access),
    UseGuards(ConversationAccessGuard),
    ...(access === 'read' ? [] : [ApiExtension(FURTHER_PROBLEMS, [thrown(readableOnly(access))])]),
  );
}

/** The id of the user whose conversation it is. */
export const ConversationOwner = createParamDecorator((_data: unknown, context): string => {
  const { conversationOwner } = context.switchToHttp().getRequest<ConversationRequest>();
  return conversationOwner ?? authenticatedUser(context).id;
});
