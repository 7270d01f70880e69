import { Injectable, type CanActivate, type ExecutionContext } from '@nestjs/common';
import type { Request } from 'express';
import { presentedKey } from '../../auth/presented-key.js';
import { DomainError } from '../../common/errors/domain-error.js';
import { currentRequest } from '../../common/requests/request-context.js';
import { type SandboxKeyHolder, SandboxKeys } from './sandbox-keys.js';

/** A request that has passed the guard. */
export interface SandboxRequest extends Request {
  sandbox?: SandboxKeyHolder;
}

/** Lets in what presents the key of a sandbox, whatever its status; see `@SandboxAuthenticated()`. */
@Injectable()
export class SandboxKeyGuard implements CanActivate {
  constructor(private readonly keys: SandboxKeys) {}

  async canActivate(context: ExecutionContext): Promise<boolean> {
    const request = context.switchToHttp().getRequest<SandboxRequest>();
    const key = presentedKey(request.headers);
    const sandbox = key === null ? null : await this.keys.find(key);
    if (!sandbox) {
      throw new DomainError('unauthorized', 'unauthorized', 'Unauthorized');
    }
    request.sandbox = sandbox;
    const current = currentRequest();
    if (current) {
      current.userId = sandbox.userId;
    }
    return true;
  }
}
