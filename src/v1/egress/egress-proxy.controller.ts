import {
  applyDecorators,
  Body,
  type CanActivate,
  Controller,
  type ExecutionContext,
  Get,
  Headers,
  HttpCode,
  Injectable,
  Post,
  UseGuards,
} from '@nestjs/common';
import { ApiExcludeController } from '@nestjs/swagger';
import type { Request } from 'express';
import {
  CREDENTIAL_HEADER,
  EGRESS_PATHS,
  type EgressPolicy,
  onceSchema,
  reportsSchema,
} from '@slipway/egress-proxy/protocol.js';
import { presentedKey } from '../../auth/api-key-format.js';
import { Public } from '../../auth/auth.decorators.js';
import { DomainError, unknownId } from '../../common/errors/domain-error.js';
import { JsonBodyBounds } from '@slipway/api/requests/json-body.interceptor.js';
import { EgressPermitRepository } from './egress-permit.repository.js';
import { EgressRequestRepository } from './egress-request.repository.js';
import { ModelCallsService } from './model-calls.service.js';
import { EgressPoliciesService } from './egress-policies.service.js';
import { EgressProxyKeys } from './egress-proxy.keys.js';

@Injectable()
class EgressProxyGuard implements CanActivate {
  constructor(private readonly keys: EgressProxyKeys) {}

  canActivate(context: ExecutionContext): boolean {
    const key = presentedKey(context.switchToHttp().getRequest<Request>().headers);
    if (key === null || !this.keys.has(key)) {
      throw new DomainError('unauthorized', 'Unauthorized');
    }
    return true;
  }
}

function ForEgressProxies(): ClassDecorator {
  return applyDecorators(ApiExcludeController(), Public(), UseGuards(EgressProxyGuard));
}

/** For the egress proxies of this installation alone, so it is not in the API document. */
@ForEgressProxies()
@Controller()
export class EgressProxyController {
  constructor(
    private readonly policies: EgressPoliciesService,
    private readonly requests: EgressRequestRepository,
    private readonly permits: EgressPermitRepository,
    private readonly calls: ModelCallsService,
  ) {}

  @Get(EGRESS_PATHS.policy)
  async policy(@Headers(CREDENTIAL_HEADER) credential: string | undefined): Promise<EgressPolicy> {
    const policy = await this.policies.policy(credential ?? '');
    if (policy === null) {
      throw unknownId('sandbox');
    }
    return policy;
  }

  @Post(EGRESS_PATHS.once)
  @HttpCode(200)
  async once(@Body() body: unknown): Promise<{ allowed: boolean }> {
    const { data } = onceSchema.safeParse(body);
    if (!data) {
      throw new DomainError('invalid_input', 'Expected a sandbox and a host.');
    }
    return { allowed: await this.permits.take(data.sandbox, data.host) };
  }

  @Post(EGRESS_PATHS.reports)
  @HttpCode(204)
  @JsonBodyBounds({ bytes: 4 * 1024 * 1024, values: 200_000 })
  async report(@Body() body: unknown): Promise<void> {
    const reports = reportsSchema.safeParse(body);
    if (!reports.success) {
      throw new DomainError('invalid_input', 'Expected the report of an egress proxy.');
    }
    const { proxy, reports: all } = reports.data;
    for (const { sandbox, requests, calls } of all) {
      await this.requests.append(sandbox, requests);
      if (proxy !== undefined) {
        await this.calls.count(sandbox, proxy, calls);
      }
    }
  }
}
