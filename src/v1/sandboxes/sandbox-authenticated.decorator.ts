import { applyDecorators, UseGuards } from '@nestjs/common';
import { ApiSecurity } from '@nestjs/swagger';
import { Public } from '../../auth/public.decorator.js';
import { SandboxKeyGuard } from './sandbox-key.guard.js';

/** For routes that take the key of a sandbox in place of a user's. */
export function SandboxAuthenticated(): MethodDecorator & ClassDecorator {
  return applyDecorators(Public(), UseGuards(SandboxKeyGuard), ApiSecurity('APIKeyHeader'));
}
