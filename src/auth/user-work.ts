import { Injectable } from '@nestjs/common';
import type { EntityManager } from 'typeorm';

/** A feature whose rows may outlive the user who made them. */
export interface UserWorkOwner {
  exists(manager: EntityManager, userId: string): Promise<boolean>;
  /** Gives all of it to another user, and stops what works with the credentials of the first. */
  handOver(manager: EntityManager, from: string, to: string): Promise<void>;
  /** After the commit. */
  handedOver(): void;
}

/** What is to be kept when a user is removed: features that import this one tell what they have. */
@Injectable()
export class UserWork {
  private readonly owners: UserWorkOwner[] = [];

  add(owner: UserWorkOwner): void {
    this.owners.push(owner);
  }

  async exists(manager: EntityManager, userId: string): Promise<boolean> {
    for (const owner of this.owners) {
      if (await owner.exists(manager, userId)) {
        return true;
      }
    }
    return false;
  }

  async handOver(manager: EntityManager, from: string, to: string): Promise<void> {
    for (const owner of this.owners) {
      await owner.handOver(manager, from, to);
    }
  }

  handedOver(): void {
    this.owners.forEach((owner) => owner.handedOver());
  }
}
