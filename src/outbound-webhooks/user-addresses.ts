import { Injectable } from '@nestjs/common';
import { isPublicHostName } from '@slipway/common/http/address-rules.js';
import { HostAllowlist } from '@slipway/common/http/host-allowlist.js';
import { InvalidInputError } from '@slipway/api/errors/problem-error.js';
import { AppConfig } from '../config/app-config.js';
import { webhookHosts } from './webhook.sender.js';

/** Which addresses users may give, for webhooks and for notifications. */
@Injectable()
export class UserAddresses {
  /** Null: any public server. */
  private readonly allowlist: HostAllowlist | null;

  constructor(config: AppConfig) {
    const hosts = webhookHosts(config);
    this.allowlist = hosts && HostAllowlist.parse(hosts);
  }

  /** The target of the address is checked again at each attempt. @throws InvalidInputError that names the member */
  check(address: string, member: string): void {
    const url = new URL(address);
    const isPublic = url.protocol === 'https:' && isPublicHostName(url.hostname);
    if (!(this.allowlist?.allows(url) ?? isPublic)) {
      const msg =
        this.allowlist === null
          ? 'Expected an https address of a public server; WEBHOOK_HOST_ALLOWLIST may name others.'
          : 'This server may not be used here; WEBHOOK_HOST_ALLOWLIST names those that may.';
      throw new InvalidInputError({ loc: ['body', member], msg, type: 'value_error' });
    }
  }
}
