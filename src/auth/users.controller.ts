import { Body, Controller, Delete, Get, Param, Patch, Post, Query } from '@nestjs/common';
import { ApiTags } from '@nestjs/swagger';
import { ApiRoute, documented, thrown } from '@slipway/api/openapi/api-route.js';
import { toPageDto } from '@slipway/api/pagination/page.dto.js';
import { UserId } from './auth.decorators.js';
import { AdministratorsOnly } from './auth.guard.js';
import {
  CreateUserDto,
  DisableUserQueryDto,
  RemoveUserQueryDto,
  SearchUsersQueryDto,
  toListedUserDto,
  toUserDto,
  UpdateUserDto,
  UserDto,
  UserIdDto,
  UserPageDto,
} from './users.dto.js';
import { lastAdministrator, roleOfMap } from './user.repository.js';
import { PersonsService } from './oidc/persons.service.js';
import { UsersService } from './users.service.js';

const UNKNOWN = { status: 404, detail: 'There is no user with this id.', description: 'Unknown user' };
const TAKEN = documented(409, 'A user with this email address exists already.', 'The address is taken');
const LAST_ADMINISTRATOR = thrown(lastAdministrator(), 'Nobody could get in any more');
const ADMINISTRATORS = 'Administrators only; for an owner, owners only.';

@ApiTags('Users')
@AdministratorsOnly()
@Controller('api/v1/users')
export class UsersController {
  constructor(
    private readonly users: UsersService,
    private readonly persons: PersonsService,
  ) {}

  @Post()
  @ApiRoute('create_user', 'Create a user', {
    description: 'Administrators only. Then issue a key with `user_id`.',
    status: 201,
    answer: { type: UserDto, description: 'The new user' },
    problems: [TAKEN],
    invalid: 'email',
    examples: {
      person: { summary: 'A person', value: { email: 'ada@example.com' } },
      service: { summary: 'A service', value: { kind: 'service', name: 'ci' } },
    },
  })
  async create(@UserId() by: string, @Body() { email, name = null, kind }: CreateUserDto): Promise<UserDto> {
    return toUserDto(await this.users.create(email ?? null, name, { kind, by }));
  }

  @Get()
  @ApiRoute('search_users', 'Look up users', {
    description:
      'Administrators only. In the order of email addresses, with what the identity provider said of each.',
    answer: { type: UserPageDto, description: 'A page of users' },
  })
  async search(@Query() query: SearchUsersQueryDto): Promise<UserPageDto> {
    const page = await this.users.search({ email: query.email__eq }, query.limit, query.page_id);
    const said = await this.persons.saidOf(page.items.map(({ id }) => id));
    return toPageDto(page, (user) => toListedUserDto(user, said.get(user.id) ?? null));
  }

  @Patch(':id')
  @ApiRoute('update_user', 'Make a user an administrator, or an ordinary user again', {
    description: `${ADMINISTRATORS} Of the keys of the user, those with the scope \`admin\` are for administrators.`,
    answer: { type: UserDto, description: 'The user' },
    problems: [
      UNKNOWN,
      LAST_ADMINISTRATOR,
      thrown(roleOfMap(), 'The role of a person of the identity provider'),
    ],
  })
  async update(
    @UserId() by: string,
    @Param() { id }: UserIdDto,
    @Body() { is_admin: isAdmin }: UpdateUserDto,
  ): Promise<UserDto> {
    return toUserDto(await this.users.setAdministrator(id, by, isAdmin));
  }

  @Post(':id/disable')
  @ApiRoute('disable_user', 'Disable a user', {
    description:
      `${ADMINISTRATORS} Within a second, on every replica: sessions, keys of devices, open streams and WebSockets end, and do ` +
      'not come back; other keys are refused until the user is enabled. Automations, followed pull requests, waiting messages ' +
      'and webhooks do nothing meanwhile. Nothing is deleted.',
    answer: { type: UserDto, description: 'The user' },
    problems: [UNKNOWN, LAST_ADMINISTRATOR],
  })
  async disable(
    @UserId() by: string,
    @Param() { id }: UserIdDto,
    @Query() { sandboxes = 'pause' }: DisableUserQueryDto,
  ): Promise<UserDto> {
    return toUserDto(await this.users.disable(id, by, sandboxes));
  }

  @Post(':id/enable')
  @ApiRoute('enable_user', 'Enable a user again', {
    description: 'Administrators only. Keys are valid again, and what waited goes on. Sandboxes stay paused.',
    answer: { type: UserDto, description: 'The user' },
    problems: [UNKNOWN],
  })
  async enable(@UserId() by: string, @Param() { id }: UserIdDto): Promise<UserDto> {
    return toUserDto(await this.users.enable(id, by));
  }

  @Delete(':id')
  @ApiRoute('delete_user', 'Remove a user', {
    description:
      `${ADMINISTRATORS} Ends the keys and removes tokens, secrets, settings and automations of the user. Sandboxes are ` +
      'paused; with the conversations they are given to `hand_over_to`, or else kept REMOVED_USER_RETENTION_SECONDS.',
    status: 204,
    answer: { description: 'Removed' },
    problems: [UNKNOWN, LAST_ADMINISTRATOR],
  })
  async remove(
    @UserId() by: string,
    @Param() { id }: UserIdDto,
    @Query() { hand_over_to: heir = null }: RemoveUserQueryDto,
  ): Promise<void> {
    await this.users.remove(id, heir, { id: by });
  }
}
