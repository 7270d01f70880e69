import { Injectable } from '@nestjs/common';
import { InjectDataSource } from '@nestjs/typeorm';
import { Column, DataSource, Entity, type EntityManager, IsNull, PrimaryColumn, Repository } from 'typeorm';

@Entity('service_state')
export class ServiceState {
  @PrimaryColumn('integer') id: number;
  @Column('uuid', { name: 'instance_id' }) instanceId: string;

  /** Encrypted with the current key: at boot it tells whether the configured keys fit the data. */
  @Column('text', { name: 'key_check', nullable: true }) keyCheck: string | null;
}

@Injectable()
export class ServiceStateRepository {
  private readonly rows: Repository<ServiceState>;

  constructor(@InjectDataSource() dataSource: DataSource) {
    this.rows = dataSource.getRepository(ServiceState);
  }

  async instanceId(): Promise<string> {
    return (await this.row()).instanceId;
  }

  async keyCheck(): Promise<string | null> {
    return (await this.row()).keyCheck;
  }

  async replaceKeyCheck(manager: EntityManager, keyCheck: string): Promise<void> {
    await manager.update(ServiceState, { id: 1 }, { keyCheck });
  }

  /** Does nothing if the row exists. */
  async initialiseKeyCheck(keyCheck: string): Promise<void> {
    await this.rows.update({ id: 1, keyCheck: IsNull() }, { keyCheck });
  }

  private async row(): Promise<ServiceState> {
    return await this.rows.findOneByOrFail({ id: 1 });
  }
}
