import { Controller, Delete, Get, Param, Post } from '@nestjs/common';
import { ApiProperty, ApiTags } from '@nestjs/swagger';
import { ApiRoute, documented } from '@slipway/api/openapi/api-route.js';
import { Shown, Time, toWire } from '@slipway/api/openapi/responses.js';
import { Identifier } from '@slipway/api/validation/field-decorators.js';
import { UserId } from '../auth.decorators.js';
import { AdministratorsOnly } from '../auth.guard.js';
import { UserIdDto } from '../users.dto.js';
import type { Identity } from './identity.repository.js';
import { ONLY_WAY_IN, PersonsService } from './persons.service.js';

class IdentityIdDto {
  @Identifier('Id of the link.', { required: true, example: '7c1e0a94-40cf-4d9c-8f4e-0d8b3b2f5a61' })
  id: string;
}

class IdentityDto {
  @ApiProperty({ format: 'uuid', example: '7c1e0a94-40cf-4d9c-8f4e-0d8b3b2f5a61' }) id: string;
  @Shown('The identity provider.', 'https://sso.example.com/realms/main') issuer: string;
  @Shown("The user's id there.", '1f0c7a2e-5b0d-4c43-9c58-6d0f3f1d2b7a') subject: string;
  @Shown('As the provider says; true where it says nothing. Gives no right.', true) email_verified: boolean;
  @Time() created_at: Date;
  @Time() last_seen_at: Date;
}

class IdentitiesDto {
  @ApiProperty({ type: [IdentityDto] }) items: IdentityDto[];
}

function toIdentityDto(identity: Identity): IdentityDto {
  return toWire(identity, 'id', 'issuer', 'subject', 'emailVerified', 'createdAt', 'lastSeenAt');
}

@ApiTags('Users')
@Controller('api/v1/users')
export class IdentitiesController {
  constructor(private readonly persons: PersonsService) {}

  @Get('me/identities')
  @ApiRoute('list_identities', 'List how you sign in by the identity provider', {
    description: 'Each is a person of an issuer; one that signs in with it is you.',
    answer: { type: IdentitiesDto, description: 'The links' },
  })
  async list(@UserId() userId: string): Promise<IdentitiesDto> {
    return { items: (await this.persons.listOf(userId)).map(toIdentityDto) };
  }

  @Delete('me/identities/:id')
  @ApiRoute('unlink_identity', 'Unlink a sign-in', {
    description: 'Its sessions end, and the next sign-in of that person makes a user of its own.',
    status: 204,
    answer: { description: 'Unlinked' },
    problems: [
      documented(404, 'There is no identity with this id.', 'Unknown link'),
      documented(409, ONLY_WAY_IN, 'The only way in'),
    ],
  })
  async unlink(@UserId() userId: string, @Param() { id }: IdentityIdDto): Promise<void> {
    await this.persons.unlink(userId, id);
  }

  @AdministratorsOnly()
  @Post(':id/restore')
  @ApiRoute('restore_user', 'Let a removed person in again', {
    description:
      'Administrators only. At the next sign-in the person is a new user; nothing of the removed one comes back.',
    status: 204,
    answer: { description: 'Let in' },
    problems: [documented(404, 'No removed user with this id is kept out.', 'Nobody of that id is kept out')],
  })
  async restore(@UserId() by: string, @Param() { id }: UserIdDto): Promise<void> {
    await this.persons.restore(id, by);
  }
}
