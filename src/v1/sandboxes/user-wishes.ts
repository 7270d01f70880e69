import { Injectable } from '@nestjs/common';
import { DomainError } from '../../common/errors/domain-error.js';
import { SettingsService } from '../../settings/settings.service.js';
import type { SandboxWishes } from './sandbox.entity.js';
import { toWishes } from './to-wishes.js';

/** What users' settings ask of sandboxes. */
@Injectable()
export class UserWishes {
  constructor(private readonly settings: SettingsService) {}

  /** Null when the user asks for nothing special. */
  async find(userId: string): Promise<SandboxWishes | null> {
    try {
      return toWishes(await this.settings.find(userId));
    } catch (error) {
      // Most users of the API alone never store any settings.
      if (error instanceof DomainError && error.kind === 'not_found') {
        return null;
      }
      throw error;
    }
  }
}
