import { timingSafeEqual } from 'node:crypto';
import {
  applyDecorators,
  type CanActivate,
  createParamDecorator,
  type ExecutionContext,
  Injectable,
  UseGuards,
} from '@nestjs/common';
import { ApiSecurity } from '@nestjs/swagger';
import type { Request } from 'express';
import { InjectRepository } from '@nestjs/typeorm';
import { Not, Repository } from 'typeorm';
import { UsersService } from '../../auth/users.service.js';
import { Public } from '../../auth/auth.decorators.js';
import { presentedKey } from '../../auth/api-key-format.js';
import { DomainError } from '../../common/errors/domain-error.js';
import { noteCaller } from '@slipway/api/requests/request-context.js';
import { isOutside, Sandbox } from './sandbox.entity.js';
import { sessionKeyHash } from './session-key.js';

export interface SandboxKeyHolder {
  sandboxId: string;
  userId: string;
  /** Unless it is RUNNING, its key opens nothing. */
  running: boolean;
  /** See `Sandbox.cause`. */
  cause: Record<string, string> | null;
  /** See `RunningSandbox.hasCredentialsOutside`. */
  hasCredentialsOutside: boolean;
}

@Injectable()
export class SandboxKeyQueries {
  constructor(@InjectRepository(Sandbox) private readonly sandboxes: Repository<Sandbox>) {}

  /** Returns null for a key that is no sandbox's. */
  async find(sessionKey: string): Promise<SandboxKeyHolder | null> {
    const hash = sessionKeyHash(sessionKey);
    const found = await this.sandboxes.findOne({
      select: { id: true, userId: true, status: true, sessionKeyHash: true, cause: true, egressMode: true },
      where: { sessionKeyHash: hash, status: Not('DELETING') },
    });
    if (found === null || !timingSafeEqual(found.sessionKeyHash, hash)) {
      return null;
    }
    const { id: sandboxId, userId, status, cause, egressMode } = found;
    const hasCredentialsOutside = isOutside(egressMode);
    return { sandboxId, userId, running: status === 'RUNNING', cause, hasCredentialsOutside };
  }
}

export function noSandboxKey(): DomainError {
  const text = 'Unauthorized: send the session_api_key of a running sandbox in the header X-Session-API-Key.';
  return new DomainError('unauthorized', text);
}

interface SandboxRequest extends Request {
  sandbox?: SandboxKeyHolder;
}

/** Accepts requests with the key of a sandbox, whatever its status; see `@SandboxAuthenticated()`. */
@Injectable()
class SandboxKeyGuard implements CanActivate {
  /** Requests with one key share a look-up, so a flood of them is one query at a time. */
  private readonly lookUps = new Map<string, Promise<SandboxKeyHolder | null>>();

  constructor(private readonly keys: SandboxKeyQueries) {}

  async canActivate(context: ExecutionContext): Promise<boolean> {
    const request = context.switchToHttp().getRequest<SandboxRequest>();
    const key = presentedKey(request.headers);
    const sandbox = key === null ? null : await this.find(key);
    if (!sandbox) {
      throw noSandboxKey();
    }
    request.sandbox = sandbox;
    noteCaller(sandbox.userId, sandbox.sandboxId);
    return true;
  }

  private async find(key: string): Promise<SandboxKeyHolder | null> {
    const underWay = this.lookUps.get(key);
    if (underWay) {
      return underWay;
    }
    const lookUp = this.keys.find(key).finally(() => this.lookUps.delete(key));
    this.lookUps.set(key, lookUp);
    return lookUp;
  }
}

export const CurrentSandbox = createParamDecorator(
  (_data: unknown, context: ExecutionContext): SandboxKeyHolder => {
    const { sandbox } = context.switchToHttp().getRequest<SandboxRequest>();
    if (!sandbox) {
      throw new DomainError('unauthorized', 'Unauthorized');
    }
    return sandbox;
  },
);

/** Refuses what would be done with the credentials of a user who is disabled. */
@Injectable()
class ActingOwnerGuard implements CanActivate {
  constructor(private readonly users: UsersService) {}

  async canActivate(context: ExecutionContext): Promise<boolean> {
    const { sandbox } = context.switchToHttp().getRequest<SandboxRequest>();
    if (!sandbox || !(await this.users.mayAct(sandbox.userId))) {
      throw new DomainError('unauthorized', 'Unauthorized');
    }
    return true;
  }
}

/** Marks routes that take the key of a sandbox in place of a user's. */
export function SandboxAuthenticated(): MethodDecorator & ClassDecorator {
  return applyDecorators(Public(), UseGuards(SandboxKeyGuard), ApiSecurity('APIKeyHeader'));
}

/** Marks routes that act in the name of the sandbox's user, with the sandbox's key. */
export function ActsForOwner(): MethodDecorator & ClassDecorator {
  return applyDecorators(Public(), UseGuards(SandboxKeyGuard, ActingOwnerGuard), ApiSecurity('APIKeyHeader'));
}
