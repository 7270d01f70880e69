import { createParamDecorator, type ExecutionContext } from '@nestjs/common';
import { DomainError } from '../../common/errors/domain-error.js';
import type { SandboxRequest } from './sandbox-key.guard.js';
import type { SandboxKeyHolder } from './sandbox-keys.js';

/** The sandbox whose key came with the request. */
export const CurrentSandbox = createParamDecorator(
  (_data: unknown, context: ExecutionContext): SandboxKeyHolder => {
    const { sandbox } = context.switchToHttp().getRequest<SandboxRequest>();
    if (!sandbox) {
      throw new DomainError('unauthorized', 'unauthorized', 'Unauthorized');
    }
    return sandbox;
  },
);
