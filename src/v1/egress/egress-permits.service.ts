import { isIP } from 'node:net';
import { Injectable } from '@nestjs/common';
import { decideOnce } from '@slipway/egress-proxy/decision.js';
import { DomainError, found } from '../../common/errors/domain-error.js';
import { InvalidInputError } from '@slipway/api/errors/problem-error.js';
import { parseEgressHost } from '@slipway/egress-rules/egress-rules.js';
import { isRestricted } from '../sandboxes/sandbox.entity.js';
import { SandboxRepository } from '../sandboxes/sandbox.repository.js';
import { EgressPermitRepository } from './egress-permit.repository.js';
import type { EgressPermitDto } from './egress.dto.js';
import { SandboxLayers } from './sandbox-layers.js';

const HTTPS = 443;

/** What the owner of a sandbox allows once. */
@Injectable()
export class EgressPermitsService {
  constructor(
    private readonly sandboxes: SandboxRepository,
    private readonly layers: SandboxLayers,
    private readonly permits: EgressPermitRepository,
  ) {}

  /** @throws DomainError not_found; conflict for a sandbox without rules; forbidden where the operator's rules refuse it */
  async allow(userId: string, id: string, text: string): Promise<EgressPermitDto> {
    const sandbox = found(await this.sandboxes.find(id, userId), 'sandbox');
    const parsed = parseEgressHost(text);
    if (parsed === null || parsed.host.startsWith('*')) {
      const msg = 'Expected one host (api.example.com), with a port where it is not 80 or 443.';
      throw new InvalidInputError({ loc: ['body', 'host'], msg, type: 'value_error' });
    }
    if (!isRestricted(sandbox.egressMode)) {
      throw withoutRules();
    }
    const { host, port } = parsed;
    const shown = port === undefined ? host : `${host.includes(':') ? `[${host}]` : host}:${port}`;
    const { layers } = found(await this.layers.of(sandbox), 'sandbox');
    const target = { host, port: port ?? HTTPS, isTls: true, isAddress: isIP(host) !== 0 };
    if (!decideOnce({ layers }, { target }).isAllowed) {
      throw refusedByOperator(shown);
    }
    return { host: shown, expires_at: (await this.permits.add(sandbox, shown)).toISOString() };
  }
}

export function refusedByOperator(host: string): DomainError {
  const detail = `${host} is refused by the rules of the operator, or of the specification of this sandbox, beyond which nothing can be allowed: ask the operator for a rule.`;
  return new DomainError('forbidden', detail);
}

export function withoutRules(): DomainError {
  return new DomainError('conflict', 'This sandbox has no rules about what it may reach.');
}
