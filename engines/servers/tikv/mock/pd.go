// The placement driver: timestamps, regions and stores.

package mock

import (
	"context"
	"io"
	"sync"
	"time"

	"github.com/pingcap/kvproto/pkg/pdpb"
	pd "github.com/tikv/pd/client"
)

type placement struct {
	pdpb.UnimplementedPDServer
	client pd.Client // the mock's
	url    string

	lock              sync.Mutex
	physical, logical int64 // the last timestamp
}

// mostLogical is the number of timestamps of a millisecond.
const mostLogical = 1 << 18

func (p *placement) header() *pdpb.ResponseHeader {
	return &pdpb.ResponseHeader{ClusterId: p.client.GetClusterID(context.Background())}
}

// GetMembers has one member, which leads.
func (p *placement) GetMembers(context.Context, *pdpb.GetMembersRequest) (*pdpb.GetMembersResponse, error) {
	own := &pdpb.Member{Name: "mock", MemberId: 1, ClientUrls: []string{p.url}, PeerUrls: []string{p.url}}
	return &pdpb.GetMembersResponse{Header: p.header(), Members: []*pdpb.Member{own}, Leader: own, EtcdLeader: own}, nil
}

// stamp reserves timestamps, each above all before, and returns the last of them.
func (p *placement) stamp(count int64) *pdpb.Timestamp {
	p.lock.Lock()
	defer p.lock.Unlock()
	if now := time.Now().UnixMilli(); now > p.physical {
		p.physical, p.logical = now, 0
	}
	if p.logical+count >= mostLogical {
		p.physical, p.logical = p.physical+1, 0
	}
	p.logical += count
	return &pdpb.Timestamp{Physical: p.physical, Logical: p.logical}
}

// Tso answers requests for timestamps.
func (p *placement) Tso(stream pdpb.PD_TsoServer) error {
	for {
		asked, err := stream.Recv()
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
		if err := stream.Send(&pdpb.TsoResponse{Header: p.header(), Count: asked.Count, Timestamp: p.stamp(int64(asked.Count))}); err != nil {
			return err
		}
	}
}

func (p *placement) region(found *pd.Region, err error) (*pdpb.GetRegionResponse, error) {
	if err != nil || found == nil {
		return &pdpb.GetRegionResponse{Header: p.header()}, err
	}
	return &pdpb.GetRegionResponse{Header: p.header(), Region: found.Meta, Leader: found.Leader}, nil
}

// GetRegion finds the region of a key.
func (p *placement) GetRegion(ctx context.Context, asked *pdpb.GetRegionRequest) (*pdpb.GetRegionResponse, error) {
	return p.region(p.client.GetRegion(ctx, asked.RegionKey))
}

// GetPrevRegion finds the region before that of a key.
func (p *placement) GetPrevRegion(ctx context.Context, asked *pdpb.GetRegionRequest) (*pdpb.GetRegionResponse, error) {
	return p.region(p.client.GetPrevRegion(ctx, asked.RegionKey))
}

// GetRegionByID finds a region.
func (p *placement) GetRegionByID(ctx context.Context, asked *pdpb.GetRegionByIDRequest) (*pdpb.GetRegionResponse, error) {
	return p.region(p.client.GetRegionByID(ctx, asked.RegionId))
}

// ScanRegions finds the regions of a range.
func (p *placement) ScanRegions(ctx context.Context, asked *pdpb.ScanRegionsRequest) (*pdpb.ScanRegionsResponse, error) {
	found, err := p.client.ScanRegions(ctx, asked.StartKey, asked.EndKey, int(asked.Limit))
	if err != nil {
		return nil, err
	}
	answer := &pdpb.ScanRegionsResponse{Header: p.header()}
	for _, each := range found {
		answer.Regions = append(answer.Regions, &pdpb.Region{Region: each.Meta, Leader: each.Leader})
		answer.RegionMetas, answer.Leaders = append(answer.RegionMetas, each.Meta), append(answer.Leaders, each.Leader)
	}
	return answer, nil
}

// GetStore finds a store.
func (p *placement) GetStore(ctx context.Context, asked *pdpb.GetStoreRequest) (*pdpb.GetStoreResponse, error) {
	found, err := p.client.GetStore(ctx, asked.StoreId)
	return &pdpb.GetStoreResponse{Header: p.header(), Store: found}, err
}

// GetAllStores has all stores, with a version that nobody can take for one of TiKV.
func (p *placement) GetAllStores(ctx context.Context, _ *pdpb.GetAllStoresRequest) (*pdpb.GetAllStoresResponse, error) {
	found, err := p.client.GetAllStores(ctx)
	for _, each := range found {
		each.Version = Version
	}
	return &pdpb.GetAllStoresResponse{Header: p.header(), Stores: found}, err
}
